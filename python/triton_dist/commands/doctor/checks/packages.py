"""Whether the packages that this one needs are there, in versions that fit."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator

from triton_dist.commands.doctor.finding import Finding, fail, fixable, ok, warn
from triton_dist.commands.doctor.situation import Situation

# Which torch it is, is the user's choice: pip alone would choose a build without a word.
_PIP = (sys.executable, "-m", "pip", "install")


def look(situation: Situation) -> Iterator[Finding]:
    """torch, and what the package's own metadata requires."""
    try:
        stated = importlib.metadata.requires("triton-dist") or []
    except importlib.metadata.PackageNotFoundError:
        yield fail("triton-dist is not installed here", "it runs from its sources alone", "nox -s build")
        return
    missing = [text for text in stated if "extra ==" not in text and not _satisfied(text)]
    if missing:
        why = "programs end with ModuleNotFoundError, or later and less clearly"
        yield fixable("FAIL", f"not satisfied: {', '.join(missing)}", why, (*_PIP, *missing))
    yield from _torch(situation, complete=not missing)


def _torch(situation: Situation, *, complete: bool) -> Iterator[Finding]:
    tested = situation.versions["ascend" if situation.on_npus else "python"]["torch"]
    version = _version("torch")
    if version is None:
        yield fail(
            "torch is not installed",
            "tests and multi-rank programs need it",
            f"{' '.join(_PIP)} torch=={tested}, from an index that has the build that you want; see build.md",
        )
    elif version.split("+")[0].split(".")[:2] != tested.split(".")[:2]:
        device = "" if situation.on_npus else "there is no device npu with it: "
        yield warn(
            f"torch {version}, and {tested} is the one that is tested",
            f"{device}torch's C++ interface is that of one release",
            f"{' '.join(_PIP)} torch=={tested}, from an index that has the build that you want; see build.md",
        )
    elif complete:
        yield ok(f"torch {version} and all other packages that are needed")


def _satisfied(text: str) -> bool:
    try:
        from packaging.requirements import Requirement
    except ImportError:
        from pip._vendor.packaging.requirements import Requirement  # type: ignore[assignment]
    requirement = Requirement(text)
    if requirement.marker is not None and not requirement.marker.evaluate():
        return True
    version = _version(requirement.name)
    return version is not None and requirement.specifier.contains(version, prereleases=True)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
