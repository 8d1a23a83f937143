"""Whether an installed torch_npu can be loaded, which `import torch` does by itself."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.metadata import Distribution
from pathlib import Path

from triton_dist import env
from triton_dist.commands.doctor.finding import Finding, Level, ok
from triton_dist.commands.doctor.situation import Situation

_SECONDS = 5.0
# Those that torch has loaded before torch_npu comes, or that stand beside it.
_OF_TORCH = re.compile(r"lib(torch|c10|shm|gomp|torch_npu|npu)[\w-]*\.so")


def look(situation: Situation) -> Iterator[Finding]:
    """Its libraries, and that it is for the torch that is there."""
    try:
        installed = importlib.metadata.distribution("torch-npu")
    except importlib.metadata.PackageNotFoundError:
        return
    must: Level = "FAIL" if env.TORCH_DEVICE_BACKEND_AUTOLOAD.text() != "0" else "warn"
    version = installed.version
    torch = _torch()
    if torch is not None and version.split("+")[0].split(".post")[0] != torch:
        yield Finding(
            must,
            f"torch_npu {version} with torch {torch}: each release is for the torch of the same number",
            "`import torch` loads torch_npu, which fails with undefined symbols",
            f"pip install torch=={version.split('.post')[0]}, or the torch_npu for {torch}; see docs/combinations.md",
        )
        return
    missing = sorted(_missing(installed))
    if missing:
        yield Finding(
            must,
            f"torch_npu {version} cannot be loaded: {', '.join(missing)} not found",
            "`import torch` loads torch_npu, and fails with it",
            "source CANN's set_env.sh; during builds without a driver: TORCH_DEVICE_BACKEND_AUTOLOAD=0",
        )
    else:
        yield ok(f"torch_npu {version}")


def _torch() -> str | None:
    try:
        return importlib.metadata.version("torch").split("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return None


def _missing(installed: Distribution) -> set[str]:
    """Libraries that those of torch_npu name and the loader does not find. Nothing is loaded for it."""
    ldd = shutil.which("ldd")
    libraries = [
        str(path)
        for file in installed.files or []
        if file.suffix == ".so" and (path := Path(str(installed.locate_file(file)))).is_file()
    ]
    if ldd is None or not libraries:
        return set()
    # It asks the loader and runs none of the code.
    done = subprocess.run([ldd, *libraries], check=False, capture_output=True, text=True, timeout=_SECONDS)
    names = re.findall(r"^\s*(\S+) => not found$", done.stdout, re.MULTILINE)
    return {name for name in names if not _OF_TORCH.match(name)}
