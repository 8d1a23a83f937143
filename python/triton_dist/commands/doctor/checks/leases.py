"""The directory with the locks of the host's NPUs: usable, and shared by all who use these NPUs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from triton_dist import env
from triton_dist.commands.doctor.finding import Finding, fail, ok, warn
from triton_dist.commands.doctor.situation import Situation
from triton_dist.testing.leases.directory import LeaseDirectory
from triton_dist.testing.leases.errors import LeaseError

_OF_CONTAINERS = (Path("/.dockerenv"), Path("/run/.containerenv"))


def look(situation: Situation) -> Iterator[Finding]:
    """That a file can be locked there, and, in a container with NPUs, that the directory is the host's."""
    try:
        directory = LeaseDirectory.of_this_host()
    except env.EnvironmentVariableError:
        return  # the check of the variables says so
    try:
        _try(directory)
    except LeaseError as error:
        yield fail(str(error), "tests cannot lease NPUs", "see the line above")
        return
    if situation.on_npus and any(file.exists() for file in _OF_CONTAINERS) and not _is_mounted(directory.path):
        yield warn(
            f"the lease directory {directory.path} is this container's own",
            "tests of other containers, and of the host, take the same NPUs at the same time",
            f"docker run -v {directory.path}:{directory.path} … (nox -s docker does)",
        )
    else:
        yield ok(f"lease directory {directory.path}")


def _try(directory: LeaseDirectory) -> None:
    os.close(directory.open("doctor", 1))


def _is_mounted(path: Path) -> bool:
    """Whether the path, or a folder above it that is not the root, comes from outside the container."""
    mounts = {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
    return any(str(each) in mounts for each in (path, *path.parents) if each != Path("/"))
