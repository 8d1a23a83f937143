"""Whether this Python is one that is supported, and whether `pip` installs into it."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from triton_dist.commands.doctor.finding import Finding, fail, ok, warn
from triton_dist.commands.doctor.situation import Situation

_SECONDS = 5.0


def look(situation: Situation) -> Iterator[Finding]:
    """The interpreter's version, its own pip, and the `pip` and `python3` that PATH finds."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    supported = situation.versions["python"]["supported"]
    here = f"python {'.'.join(map(str, sys.version_info[:3]))} at {sys.executable}"
    if version not in supported:
        yield fail(
            f"{here}, and triton-ascend has wheels for {' and '.join(supported)} only",
            "pip finds no triton-ascend for it",
            f"make an environment with python{supported[-1]}, or let `ci/nox -s build` make one",
        )
        return
    if importlib.util.find_spec("pip") is None:
        yield fail(f"{here} has no pip", "nothing can be installed into it", f"{sys.executable} -m ensurepip")
        return
    yield from _pip_on_path(here)


def _pip_on_path(here: str) -> Iterator[Finding]:
    pip = shutil.which("pip") or shutil.which("pip3")
    if pip is None:
        yield ok(f"{here}; no pip on PATH, `python -m pip` is its own")
        return
    other = _interpreter_of(pip)
    if other is None:
        yield ok(f"{here}, with a pip of its own; whose {pip} is does not show")
    elif _same(other, Path(sys.executable)):
        yield ok(f"{here}, pip of the same interpreter")
    else:
        yield warn(
            f"{here}, and {pip} is that of {other}",
            "`pip install` says that it succeeded, and the module is not found here",
            f"{sys.executable} -m pip in place of pip",
        )


def _interpreter_of(pip: str) -> Path | None:
    """The interpreter that runs a script called pip; None where it does not tell."""
    with open(pip, "rb") as file:
        start = file.read(2000).decode(errors="replace")
    # The second form is pip's own, for paths that are too long for a #! line.
    found = re.match(r"#! *(/\S*python[0-9.]*)\s", start) or re.search(r"exec'? *\"?(/[^\s\"]*python[0-9.]*)", start)
    if found:
        return Path(found[1])
    # A shim, such as pyenv's: only running it tells.
    try:
        done = subprocess.run([pip, "--version"], check=False, capture_output=True, text=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    place = re.search(r" from (\S+)/lib/python([0-9.]+)/", done.stdout)
    return Path(place[1], "bin", f"python{place[2]}") if place else None


def _same(one: Path, other: Path) -> bool:
    """Whether two paths are one interpreter in one environment."""
    # The program of a virtual environment is a link to the one that it was made from: its folder tells them apart.
    folders = (os.path.realpath(one.parent), os.path.realpath(other.parent))
    return folders[0] == folders[1] and os.path.realpath(one) == os.path.realpath(other)
