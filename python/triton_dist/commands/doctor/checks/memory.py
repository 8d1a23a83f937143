"""Memory for the ranks of a job, and /dev/shm."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from triton_dist.commands.doctor.finding import Finding, fail, ok, warn
from triton_dist.commands.doctor.situation import Situation

_SHM = Path("/dev/shm")
_MB = 1 << 20
# Docker's default. Collectives of 8 ranks and a data loader do not fit into it.
_SMALL_SHM = 64 * _MB
# A rank that was started afresh, with torch and triton: 220 MB (the kept ones share most of it).
_RANK = 220 * _MB
_LINK = 1024 * _MB


def look(situation: Situation) -> Iterator[Finding]:
    """What is free, against what a job or a build takes."""
    yield from _shared(situation)
    free, limit = _available()
    needed = _LINK if situation.before_build else situation.ranks * _RANK
    if free >= needed:
        yield ok(f"{_size(free)} of memory free")
        return
    if situation.before_build:
        yield warn(
            f"{_size(free)} of memory free ({limit}), and a link takes some {_size(_LINK)}",
            "the compiler or linker is killed",
            "MAX_JOBS=1 TRITON_PARALLEL_LINK_JOBS=1",
        )
    else:
        yield warn(
            f"{_size(free)} of memory free ({limit}), and {situation.ranks} ranks take some {_size(needed)}",
            "ranks are killed",
            "run fewer tests at once (-n 1), or give the container more memory",
        )


def _shared(situation: Situation) -> Iterator[Finding]:
    try:
        disk = os.statvfs(_SHM)
    except OSError:
        yield warn(f"there is no {_SHM}", "torch cannot share tensors between processes", f"mount a tmpfs at {_SHM}")
        return
    size, free = disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize
    mend = "docker run --shm-size=1g …, or --ipc=host (nox -s docker gives it)"
    why = "what does not fit is not an error but a SIGBUS, or `No space left on device` in a data loader"
    if not os.access(_SHM, os.W_OK):
        yield fail(f"{_SHM} cannot be written to", "torch cannot share tensors between processes", f"chmod 1777 {_SHM}")
    elif size <= _SMALL_SHM:
        level = fail if situation.on_npus else warn
        yield level(f"{_SHM} has {_size(size)} in all", why, mend)
    elif free < _SMALL_SHM:
        yield warn(f"{_SHM} has {_size(free)} left of {_size(size)}", why, f"remove what is left over: ls -l {_SHM}")
    else:
        yield ok(f"{_SHM} has {_size(free)} free")


def _available() -> tuple[int, str]:
    """Bytes that may still be taken, and what limits them."""
    machine = next(
        int(line.split()[1]) * 1024
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("MemAvailable:")
    )
    groups = (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        (
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    )
    for limit, used in groups:
        try:
            left = int(Path(limit).read_text()) - int(Path(used).read_text())
        except (OSError, ValueError):  # no such version of control groups, or no limit
            continue
        if left < machine:
            return left, "the limit of this container"
    return machine, "of the machine"


def _size(count: int) -> str:
    return f"{count / (1 << 30):.1f} GB" if count >= 1 << 30 else f"{count // _MB} MB"
