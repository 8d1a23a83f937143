"""The locked requirements of the simulator environment: every package, with the hashes of its files.

torch stands in a file of its own. The build of it that is meant, for the CPU, is not the one that a package index
gives for its name; who installs chooses where it comes from, and the hashes say whether it is the right one. What it
needs besides is locked with the rest.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ci.pins import cpu_torch
from ci.pins.file import PinError, Pins

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PATH = "docker/sim/requirements.txt"
TORCH_PATH = "docker/sim/torch.txt"
_TORCH_HEAD = """\
# Written by `nox -s pins -- --lock`: the CPU build of torch for {machines}.
"""
_INPUTS = "# inputs: sha256:"
_HEAD = """\
# Written by `nox -s pins -- --lock`: what the image `sim` installs, besides torch (see torch.txt).
# For CPython {python} on x86_64 and aarch64.
"""


def requirements(root: Path, pins: Pins) -> list[str]:
    """What is locked: all that the package, its tests and its build need, and what the pinned torch needs."""
    project = tomllib.loads((root / "python" / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    return sorted(
        {
            *project["build-system"]["requires"],
            *project["project"]["dependencies"],
            *extras["test"],
            *extras["compile"],
            *extras["lint"],
            *(text for text in extras["dev"] if not text.startswith("triton-dist[")),
            f"torch=={pins.value('python.torch')}",
        }
    )


def _without_torch(root: Path, pins: Pins) -> list[str]:
    return [text for text in requirements(root, pins) if Requirement(text).name != "torch"]


def is_current(root: Path, pins: Pins) -> bool:
    """Whether the file was made from what would be locked now."""
    path = root / PATH
    return path.is_file() and f"{_INPUTS}{_digest(root, pins)}\n" in path.read_text()


def faults(root: Path, pins: Pins) -> Iterator[str]:
    """What is wrong with the locked requirements, one line each."""
    if not is_current(root, pins):
        yield f"{PATH}: not made from these pins and this python/pyproject.toml; lock again"
        return
    locked = _locked((root / PATH).read_text())
    python = str(pins.value("images.sim-python"))
    for text in _without_torch(root, pins):
        wanted = Requirement(text)
        name = canonicalize_name(wanted.name)
        if wanted.marker is not None and not wanted.marker.evaluate({"python_version": python}):
            continue
        if name not in locked:
            yield f"{PATH}: {name} is missing"
        elif not wanted.specifier.contains(locked[name], prereleases=True):
            yield f"{PATH}: {name} {locked[name]} is locked, and {text} is required"
    torch = _locked((root / TORCH_PATH).read_text()).get("torch")
    if torch != pins.value("python.torch"):
        yield f"{TORCH_PATH}: torch {torch} is locked, and {pins.value('python.torch')} is pinned; lock again"


def write(root: Path, pins: Pins) -> None:
    """Asks the package index what goes together, and writes both files.

    Raises:
        PinError: there is no answer, the requirements contradict each other, or no CPU build of torch is to be had.
    """
    torch, python = str(pins.value("python.torch")), str(pins.value("images.sim-python"))
    builds = list(cpu_torch.builds(torch, python))
    if not builds:
        raise PinError(
            f"no CPU build of torch {torch} for Python {python} was found: name an index or a directory that has it in "
            "TRITON_DIST_TORCH_INDEX"
        )
    needs = sorted({need for build in builds for need in build.needs})
    with tempfile.TemporaryDirectory(prefix="triton-dist-lock-") as directory:
        source, result = Path(directory, "requirements.in"), Path(directory, "requirements.txt")
        source.write_text("\n".join([*_without_torch(root, pins), *needs]) + "\n")
        # Without configuration: an index of this machine must not get into the file.
        command = [
            *(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-config", "--universal"),
            *("--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"),
            *("--python-version", python, "--output-file", str(result), str(source)),
        ]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise PinError(f"the requirements cannot be locked: {done.stderr.strip() or 'uv failed'}")
        body = result.read_text()
    head = _HEAD.format(python=python)
    (root / PATH).parent.mkdir(parents=True, exist_ok=True)
    (root / PATH).write_text(f"{head}{_INPUTS}{_digest(root, pins)}\n{body}")
    hashes = " \\\n".join(f"    --hash=sha256:{build.sha256}" for build in builds)
    machines = " and ".join(build.machine for build in builds)
    (root / TORCH_PATH).write_text(f"{_TORCH_HEAD.format(machines=machines)}torch=={torch} \\\n{hashes}\n")


def _digest(root: Path, pins: Pins) -> str:
    inputs = [*requirements(root, pins), f"python {pins.value('images.sim-python')}"]
    return hashlib.sha256("\n".join(inputs).encode()).hexdigest()


def _locked(text: str) -> dict[str, str]:
    """Name to version of the requirements that are pinned with at least one hash."""
    entries = re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)[^\n]*\\\n\s+--hash=sha256:[0-9a-f]{64}", text, re.MULTILINE)
    return {canonicalize_name(name): version for name, version in entries}
