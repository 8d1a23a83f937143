"""LLVM, and what csrc is built with: asked of the build itself, so that both say the same."""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from triton_dist.commands.doctor.finding import Finding, fail, ok, warn
from triton_dist.commands.doctor.situation import Situation

_TOOLS = ("cmake", "ninja")


def look(situation: Situation) -> Iterator[Finding]:
    """What the build would use; for a wheel, that it needs nothing."""
    if situation.checkout is None:
        yield ok("installed from a wheel: nothing is built here")
    else:
        settings = _build_backend(situation.checkout, "settings")
        errors = _build_backend(situation.checkout, "errors")
        try:
            yield ok(f"build: {settings.resolve().summary}")
        except errors.BuildSettingsError as error:
            yield fail(str(error), "csrc cannot be built", "see the line above")
        absent = [tool for tool in _TOOLS if shutil.which(tool) is None]
        if absent:
            yield warn(
                f"no {' and no '.join(absent)} on PATH",
                "the build fetches it from a package index",
                f"apt-get install {' '.join({'ninja': 'ninja-build'}.get(tool, tool) for tool in absent)}",
            )
    if not situation.on_npus and not any(map(shutil.which, ("cc", "gcc", "clang"))):
        yield fail("no C compiler on PATH", "kernels for simulated NPUs cannot be linked", "apt-get install gcc")


def _build_backend(checkout: Path, module: str) -> ModuleType:
    """A module of the checkout's build backend, which is on nobody's path."""
    if "_build_backend" not in sys.modules:
        directory = checkout / "python" / "_build_backend"
        spec = importlib.util.spec_from_file_location(
            "_build_backend", directory / "__init__.py", submodule_search_locations=[str(directory)]
        )
        assert spec is not None
        assert spec.loader is not None
        package = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = package
        spec.loader.exec_module(package)
    return importlib.import_module(f"_build_backend.{module}")
