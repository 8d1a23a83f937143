"""Directories of wheels that images install from: filled once, from where this machine's pip looks."""

from __future__ import annotations

import hashlib
import platform
import shutil
import sys
from pathlib import Path

import nox

from _build_backend.checkout import ROOT, env, versions
from ci import report

_DIRECTORY = ROOT / "build" / "wheelhouse"
_SIM = ROOT / "docker" / "sim"


def directory(image: str) -> Path:
    """Where the wheels of an image are kept."""
    return _DIRECTORY / image


def fill_sim(session: nox.Session, *, dry: bool) -> None:
    """All that the image `sim` installs, as locked. With the same locked files there is nothing to do."""
    wheels = directory("sim")
    locked = [_SIM / "requirements.txt", _SIM / "torch.txt"]
    key = hashlib.sha256(b"\0".join(file.read_bytes() for file in locked)).hexdigest()
    stamp = wheels / "filled"
    if dry or (stamp.is_file() and stamp.read_text() == key):
        return
    if env.TRITON_OFFLINE_BUILD.get():
        session.error(
            f"TRITON_OFFLINE_BUILD is on and {wheels} does not hold what is locked: fill it where there is a network"
        )
    with report.step(session.name, "wheels of the image"):
        # Another lock's wheels would only make the directory grow.
        shutil.rmtree(wheels, ignore_errors=True)
        wheels.mkdir(parents=True)
        for file in locked:
            _download(session, file, wheels)
        stamp.write_text(key)


def _download(session: nox.Session, file: Path, wheels: Path) -> None:
    index = env.TRITON_DIST_TORCH_INDEX.get() if file.name == "torch.txt" else None
    place = [] if index is None else ["--find-links" if Path(index).is_dir() else "--index-url", index]
    python = versions()["images"]["sim-python"]
    session.run(
        *(sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download"),
        *("--no-deps", "--require-hashes"),
        *("--only-binary=:all:", "--python-version", python, *_platforms(), "--dest", str(wheels), *place),
        *("-r", str(file)),
        external=True,
    )


def _platforms() -> list[str]:
    """The platform tags of this machine that an image of today's Debian takes."""
    machine = platform.machine()
    tags = [*(f"manylinux_2_{minor}" for minor in (34, 31, 28, 27, 24, 17, 12, 5)), "manylinux2014", "linux"]
    return [word for tag in tags for word in ("--platform", f"{tag}_{machine}")]
