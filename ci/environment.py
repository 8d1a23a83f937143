"""The one Python environment that all sessions, and the user's own `python`, share."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nox

from _build_backend.checkout import ROOT, env, versions
from ci import report

SYSTEM_FLAG = "--system"
OFFLINE_FLAG = "--offline"


@dataclass(frozen=True)
class Environment:
    """A Python environment to install into.

    Attributes:
        python: its interpreter.
        origin: how it was chosen, in words.
        variables: what its programs need in their environment.
    """

    python: Path
    origin: str
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def bin(self) -> Path:
        """Where its programs are."""
        return self.python.parent

    def run(self, session: nox.Session, *arguments: str, variables: dict[str, str] | None = None) -> None:
        """Runs its interpreter with `arguments`; output goes to the user, a failure ends the session."""
        changes = {"PATH": f"{self.bin}:{_path()}", **self.variables, **(variables or {})}
        session.run(str(self.python), *arguments, env=changes, external=True)

    def probe(self, requirements: list[str]) -> dict[str, Any]:
        """What is installed in it (see probe.py), and which of `requirements` are not satisfied."""
        output = subprocess.run(
            [self.python, ROOT / "ci" / "probe.py", *requirements], check=True, capture_output=True, text=True
        ).stdout
        result: dict[str, Any] = json.loads(output)
        return result


def current(session: nox.Session) -> Environment:
    """The active environment, else `.venv` in the checkout, which is made when it is missing.

    `-- --system` chooses the interpreter that runs nox instead, for container images.
    """
    if SYSTEM_FLAG in session.posargs:
        # Debian's Python takes packages from pip only from those who insist.
        insist = {"PIP_BREAK_SYSTEM_PACKAGES": "1"}
        chosen = Environment(Path(sys.executable), f"the Python of nox, as {SYSTEM_FLAG} says", insist)
    elif active := env.VIRTUAL_ENV.get():
        chosen = Environment(active / "bin" / "python", "the active virtual environment")
    elif active := env.CONDA_PREFIX.get():
        chosen = Environment(active / "bin" / "python", "the active conda environment")
    else:
        chosen = Environment(ROOT / ".venv" / "bin" / "python", "the checkout's environment")
        if not chosen.python.exists():
            with report.step(session.name, "environment .venv"):
                _create(session, ROOT / ".venv")
    if not chosen.python.exists():
        session.error(f"{chosen.origin} has no {chosen.python}: activate another one, or none to use .venv")
    version = _version_of(str(chosen.python))
    if version not in _supported():
        session.error(
            f"{chosen.origin}, {chosen.python}, is Python {version or 'that does not run'}; {_needed()}: "
            "activate another one, or none to use .venv"
        )
    report.ran_in(f"{chosen.origin}: {chosen.python} (Python {version})")
    return chosen


def own_arguments(session: nox.Session) -> list[str]:
    """The arguments after `--` that are meant for the program that the session runs."""
    return [argument for argument in session.posargs if argument not in (SYSTEM_FLAG, OFFLINE_FLAG)]


def _create(session: nox.Session, directory: Path) -> None:
    names = [sys.executable, *(f"python{version}" for version in reversed(_supported()))]
    base = next((name for name in names if _version_of(name) in _supported()), None)
    if base is None:
        session.error(f"no Python to make {directory} with: {_needed()}")
    # virtualenv comes with nox and brings its own pip, so Debian's python3-venv is not needed.
    session.run(sys.executable, "-m", "virtualenv", "-q", "-p", base, str(directory), external=True)


def _version_of(python: str) -> str:
    """Major and minor version of an interpreter; empty when it does not run (a pyenv shim may not)."""
    if shutil.which(python) is None:
        return ""
    question = "import sys; print('%d.%d' % sys.version_info[:2])"
    answer = subprocess.run([python, "-c", question], check=False, capture_output=True, text=True)
    return answer.stdout.strip()


def _supported() -> list[str]:
    supported: list[str] = versions()["python"]["supported"]
    return supported


def _needed() -> str:
    return f"triton-ascend has wheels for {' and '.join(_supported())} here"


def _path() -> str:
    return env.child_environ()["PATH"]
