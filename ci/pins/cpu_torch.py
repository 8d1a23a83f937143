"""The builds of torch for the CPU that an index offers: their hashes, and what they need."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from triton_dist import env

_PLATFORMS = {"x86_64": "manylinux_2_28_x86_64", "aarch64": "manylinux_2_28_aarch64"}
_OF_CUDA = re.compile(r"nvidia-|cuda-|triton$")


@dataclass(frozen=True)
class Build:
    """A wheel of torch.

    Attributes:
        machine: the processor it is for.
        sha256: the hash of the file, in hexadecimal.
        needs: the requirements that it has.
    """

    machine: str
    sha256: str
    needs: tuple[str, ...]


def builds(version: str, python: str) -> Iterator[Build]:
    """The wheels for the CPU of this torch that pip finds, at TRITON_DIST_TORCH_INDEX or where it is set up to look."""
    for machine, platform in _PLATFORMS.items():
        answer = _ask(version, python, platform)
        if answer is None:
            continue
        stated = answer["metadata"].get("requires_dist", [])
        needs = [text for text in stated if "extra ==" not in text]
        # A build for CUDA has the same name and version; it gives itself away by what it needs.
        if not any(_OF_CUDA.match(Requirement(text).name) for text in needs):
            yield Build(machine, answer["download_info"]["archive_info"]["hashes"]["sha256"], tuple(needs))


def _ask(version: str, python: str, platform: str) -> dict[str, Any] | None:
    """What pip would install, in the words of its report; None where it finds nothing."""
    index = env.TRITON_DIST_TORCH_INDEX.get()
    place: list[str] = []
    if index is not None:
        place = ["--no-index", "--find-links", index] if Path(index).is_dir() else ["--index-url", index]
    with tempfile.TemporaryDirectory(prefix="triton-dist-torch-") as directory:
        report = Path(directory, "report.json")
        command = [
            *(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--dry-run"),
            *("--ignore-installed", "--no-deps", "--only-binary=:all:", "--target", directory),
            *("--python-version", python, "--platform", platform, "--report", str(report), *place),
        ]
        done = subprocess.run([*command, f"torch=={version}"], check=False, capture_output=True, text=True)
        if done.returncode or not report.is_file():
            return None
        found: dict[str, Any] = json.loads(report.read_text())["install"][0]
        return found
