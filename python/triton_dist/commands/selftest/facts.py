"""What a report says of the host and of the environment: versions, pins, variables, npu-smi."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import sys
from pathlib import Path
from typing import Any

from triton_dist import __version__, env, pins
from triton_dist.commands.doctor.checks import cann
from triton_dist.commands.env import state
from triton_dist.devices import npu_smi

_PACKAGES = ("torch", "torch_npu", "triton", "triton-ascend", "ascendnpu-ir", "shmem", "numpy", "pytest", "pip")
# Tables of docker/versions.toml that say what this package is made for.
_PINS = ("python", "toolchain", "ascend", "sources")


def gather() -> dict[str, Any]:
    """All of it, by title, in types of JSON; takes as long as npu-smi does to answer."""
    return {
        "host": {"system": platform.platform(), "python": f"{sys.version.split()[0]} at {sys.executable}"},
        "versions": {"triton-dist": f"{__version__} at {_package()}", **_versions()},
        "CANN": _cann(),
        "pins": {name: table for name, table in pins.read().items() if name in _PINS},
        "build": _build_records(),
        "variables": _variables(),
        "npu-smi": _npu_smi(),
    }


def _package() -> Path:
    return Path(__file__).resolve().parents[2]


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def _cann() -> str:
    home = env.ASCEND_HOME_PATH.text() or env.ASCEND_TOOLKIT_HOME.text()
    if not home:
        return "none: neither ASCEND_HOME_PATH nor ASCEND_TOOLKIT_HOME is set"
    return f"{cann.version_at(Path(home)) or 'of a version that is not known'} at {home}"


def _build_records() -> dict[str, Any]:
    """By file name, what builds of this checkout for this Python were made from, without what each input was."""
    root = pins.checkout()
    if root is None:
        return {"wheel": f"installed from one, at {_package()}"}
    records: dict[str, Any] = {}
    for file in sorted((root / "build").glob(f"{sys.implementation.cache_tag}-*.record.json")):
        try:
            record = json.loads(file.read_text())
            records[file.name] = {name: record[name] for name in _RECORDED if name in record}
        except (OSError, ValueError) as error:
            records[file.name] = f"cannot be read: {error}"
    return records


_RECORDED = ("made", "commit", "changed_since_commit", "pins", "flags", "sources", "results", "seconds")


def _variables() -> dict[str, str]:
    """Those of the registry that are set."""
    states = map(state.of, env.REGISTRY.values())
    return {each.variable.name: each.value for each in states if each.value is not None}


def _npu_smi() -> dict[str, str]:
    """What each question was answered with, or why not."""
    questions = (("info",), ("info", "-m"), ("info", "-t", "topo"))
    if not npu_smi.is_installed():
        return {"info": "npu-smi is not installed, or not on the PATH"}
    answers = npu_smi.ask_all(*questions)
    return {" ".join(question): str(answer) for question, answer in zip(questions, answers, strict=True)}
