"""Which triton is imported, and whether it is triton-ascend's.

Two distributions ship a directory `triton`, and the one installed last wins without a word; what was uninstalled can
leave its directory behind. What counts is therefore the files that are imported, held against triton-ascend's record.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution
from pathlib import Path

from triton_dist.commands.doctor.finding import Finding, fail, fixable, ok
from triton_dist.commands.doctor.situation import Situation

_NAME = "triton-ascend"
# Beyond this, a file's size stands for its content: hashing libtriton takes most of a second.
_HASHED_BYTES = 1 << 20
_CORE = ("triton/__init__.py", "triton/_C/", "triton/backends/ascend/", "triton/compiler/")
_SYMPTOM = "kernels would fail with errors such as: triton._C.libtriton is not a package"
_PIP = (sys.executable, "-m", "pip")


def look(situation: Situation) -> Iterator[Finding]:
    """Whether `import triton` gives what triton-ascend installed, and nothing lies over it."""
    wanted = situation.versions["python"][_NAME]
    reinstall = (*_PIP, "install", "--force-reinstall", "--no-deps", f"{_NAME}=={wanted}")
    installed = _distribution(_NAME)
    spec = importlib.util.find_spec("triton")
    origin = spec.origin if spec is not None else None
    if installed is None:
        left = "" if spec is None else f", and something is left of a triton at {_place(spec)}"
        yield fixable("FAIL", f"{_NAME} is not installed{left}", "there is nothing that compiles kernels", reinstall)
        return
    if installed.version != wanted:
        yield fixable(
            "FAIL",
            f"{_NAME} is {installed.version}, and {wanted} is the one that this package is made for",
            "its compiler has other passes and options",
            reinstall,
        )
        return
    stock = _distribution("triton")
    if stock is not None:
        imported = f", and {Path(origin).parent} is imported" if origin else ""
        yield fixable(
            "FAIL",
            f"the distribution triton {stock.version} lies over {_NAME} {wanted}{imported}",
            _SYMPTOM,
            (*_PIP, "uninstall", "--yes", "triton"),
            reinstall,
        )
        return
    if origin is None:
        place = "nothing" if spec is None else f"{_place(spec)}, a directory without __init__.py,"
        yield fixable("FAIL", f"{place} is imported as triton, not {_NAME} {wanted}", _SYMPTOM, reinstall)
        return
    home = Path(str(installed.locate_file("triton")))
    if Path(origin).parent.resolve() != home.resolve():
        yield fail(
            f"triton is imported from {Path(origin).parent}, not from {_NAME} {wanted} at {home}",
            _SYMPTOM,
            f"take {Path(origin).parents[1]} out of PYTHONPATH, or start Python elsewhere",
        )
        return
    changed = _changed(installed)
    if changed is not None:
        yield fixable("FAIL", f"{changed} is not the one that {_NAME} {wanted} installed", _SYMPTOM, reinstall)
        return
    yield ok(f"triton is imported from {_NAME} {wanted} at {home}")


def _distribution(name: str) -> Distribution | None:
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _place(spec: importlib.machinery.ModuleSpec) -> str:
    places = list(spec.submodule_search_locations or [])
    return places[0] if places else str(spec.origin)


def _changed(installed: Distribution) -> Path | None:
    """A file of triton's core or of its Ascend backend that is missing or another; None if all are as recorded."""
    for file in installed.files or []:
        name = str(file)
        if name.endswith((".py", ".so")) and name.startswith(_CORE):
            path = Path(str(installed.locate_file(file)))
            if not path.is_file() or (file.size is not None and path.stat().st_size != file.size):
                return path
            if file.hash and (file.size or 0) <= _HASHED_BYTES and _sha256(path) != file.hash.value:
                return path
    return None


def _sha256(path: Path) -> str:
    digest = hashlib.sha256(path.read_bytes()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
