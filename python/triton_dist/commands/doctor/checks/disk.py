"""Room, and the right to write, where kernels, builds and temporary files are kept."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from triton_dist import env
from triton_dist.commands.doctor.finding import Finding, fail, ok, warn
from triton_dist.commands.doctor.situation import Situation

_MB = 1 << 20
_LITTLE, _TOO_LITTLE = 1024 * _MB, 64 * _MB


def look(situation: Situation) -> Iterator[Finding]:
    """Each of these directories, or what is there of the way to it."""
    places = {"the system's temporary directory": (Path(tempfile.gettempdir()), "TMPDIR")}
    for variable in (env.TRITON_DIST_CACHE_DIR, env.TRITON_CACHE_DIR, env.TRITON_DUMP_DIR):
        try:
            chosen = variable.get()
        except env.EnvironmentVariableError:
            continue  # the check of the variables says so
        if chosen is not None:
            places[variable.name] = (chosen, variable.name)
    if situation.checkout is not None:
        places["the build directory"] = (situation.checkout / "build", "")
    fine = []
    for name, (path, named_by) in places.items():
        finding = _of(name, path, named_by)
        if finding is None:
            fine.append(str(path))
        else:
            yield finding
    if fine:
        yield ok(f"room on disk at {', '.join(fine)}")


def _of(name: str, path: Path, variable: str) -> Finding | None:
    elsewhere = f"name another directory in {variable}" if variable else "move the checkout"
    there = next((each for each in (path, *path.parents) if each.exists()), Path("/"))
    if not there.is_dir():
        return fail(f"{name}, {path}: {there} is not a directory", "nothing can be kept there", elsewhere)
    if not os.access(there, os.W_OK | os.X_OK):
        return fail(f"{name}, {path}: this user may not write to {there}", "nothing can be kept there", elsewhere)
    disk = os.statvfs(there)
    free = disk.f_bavail * disk.f_frsize
    if free >= _LITTLE:
        return None
    level = fail if free < _TOO_LITTLE else warn
    why = "kernels, builds and reports are cut off with: No space left on device"
    return level(f"{name}, {path}, has {free // _MB} MB free", why, f"make room there, or {elsewhere}")
