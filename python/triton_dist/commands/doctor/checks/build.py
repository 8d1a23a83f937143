"""What earlier builds left behind: CMake keeps what it was configured with first, also when that is gone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from triton_dist.commands.doctor.finding import Finding, fixable, ok
from triton_dist.commands.doctor.situation import Situation


def look(situation: Situation) -> Iterator[Finding]:
    """Each CMake cache under build/ whose sources, LLVM or compiler are not there any more."""
    if situation.checkout is None:
        return
    caches = sorted((situation.checkout / "build").glob("*/CMakeCache.txt"))
    stale = [(cache, reason) for cache in caches if (reason := _stale(cache, situation.checkout))]
    for cache, reason in stale:
        yield fixable(
            "FAIL",
            f"{cache} {reason}",
            "CMake goes on with what it was configured with first, and the build fails or uses what is gone",
            ("rm", "-rf", str(cache), str(cache.parent / "CMakeFiles")),
        )
    if caches and not stale:
        yield ok(f"{len(caches)} build {'directory' if len(caches) == 1 else 'directories'} in {caches[0].parents[1]}")


def _stale(cache: Path, checkout: Path) -> str | None:
    """Why the cache cannot be used again; None if it can."""
    entries = dict(re.findall(r"^([A-Za-z_]\w*):[A-Z]+=(.*)$", cache.read_text(errors="replace"), re.MULTILINE))
    home = Path(entries.get("CMAKE_HOME_DIRECTORY", ""))
    if not home.resolve().is_relative_to(checkout.resolve()):
        return f"is that of another checkout, {home}"
    for name in ("LLVM_SYSPATH", "LLVM_DIR", "MLIR_DIR", "CMAKE_CXX_COMPILER"):
        value = entries.get(name, "")
        if name.endswith("_DIR") and name in entries and (not value or value.endswith("-NOTFOUND")):
            return f"has an empty {name}"
        if value.startswith("/") and not Path(value).exists():
            return f"names {name}={value}, which is not there any more"
    return None
