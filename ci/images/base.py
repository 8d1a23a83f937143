"""The image that others start from: pulled, or, where no registry is reached, made by debootstrap."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import nox

from ci import report
from ci.images.engine import Engine

_SUITES = {"debian:12-slim": "bookworm"}


def ensure(session: nox.Session, engine: Engine, name: str, *, offline: bool) -> str:
    """The name of a local image that is, or stands for, the image `name`; ends the session where none can be had."""
    if engine.dry or engine.has_image(name):
        return name
    made = f"triton-dist-base:{re.sub(r'[^a-z0-9]+', '-', name)}"
    if engine.has_image(made):
        report.note(f"{made} stands for {name}: it was made by debootstrap")
        return made
    if not offline and engine.pull(name):
        return name
    suite = _SUITES.get(name)
    why = "offline" if offline else "no registry gives it"
    if suite is None or shutil.which("debootstrap") is None or os.geteuid() != 0:
        how = "; as root, with the package debootstrap, it is made here" if suite else ""
        session.error(f"the image {name} is not on this host, and {why}: docker pull {name}, or docker load{how}")
    with report.step(session.name, f"base image {made}, by debootstrap: {why}"):
        _debootstrap(session, engine, suite, made)
    return made


def _debootstrap(session: nox.Session, engine: Engine, suite: str, name: str) -> None:
    with tempfile.TemporaryDirectory(prefix="triton-dist-base-") as directory:
        root = Path(directory, "root")
        session.run("debootstrap", "--variant=minbase", suite, str(root), _mirror(), external=True, silent=True)
        # What it left for itself, and no image should carry.
        shutil.rmtree(root / "var" / "cache" / "apt" / "archives", ignore_errors=True)
        pack = ["tar", "--numeric-owner", "-C", str(root), "-c", "."]
        with subprocess.Popen(pack, stdout=subprocess.PIPE) as packing:
            done = subprocess.run([engine.client, "import", "-", name], check=False, stdin=packing.stdout)
        if packing.returncode or done.returncode:
            session.error(f"the tree that debootstrap made could not be imported as {name}")


def _mirror() -> str:
    """The package mirror that this machine itself uses."""
    files = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    text = "\n".join(file.read_text() for file in files if file.is_file())
    found = re.search(r"^(?:deb\s+(?:\[[^\]]*\]\s+)?|URIs:\s*)(\S+/debian)/?\s*", text, re.MULTILINE)
    return found[1] if found else "http://deb.debian.org/debian"
