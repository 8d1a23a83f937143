"""`triton.language.extra.cann.libdevice`: the math functions that triton-ascend 3.2.0 has.

They come from `triton.language.extra.ascend.libdevice`. The others that Triton's portable `libdevice` declares raise
NotImplementedError when called, at the kernel's line.
"""

from __future__ import annotations

from typing import Any

from triton.language.extra import libdevice as _portable
from triton.language.extra.ascend import libdevice as _ascend
from triton.triton_patch.language.standard import atan2, finitef, isfinited, rint

from triton_dist.language._frontend import interpretable
from triton_dist.shims.cann._not_given import NotGiven

__all__ = ["atan2", "finitef", "isfinited", "rint"]

_REFUSED_THERE = ("div_rz", "fmod", "trunc")
"""Functions of 3.2.0 that fail for every argument, with a message that sends the user back to themselves."""


def __getattr__(name: str) -> Any:
    # Asked for one by one: triton-ascend puts functions into its module after it has been imported.
    if not name.startswith("_"):
        there = getattr(_ascend, name, None)
        if callable(there) and name not in _REFUSED_THERE:
            return interpretable(there)
        if hasattr(_portable, name):
            return NotGiven(f"{__name__}.{name}", "triton-ascend 3.2.0 has no such function")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    given = {name for name, value in vars(_ascend).items() if callable(value)}
    declared = {name for name, value in vars(_portable).items() if callable(value)}
    return sorted(name for name in {*globals(), *given, *declared} if not name.startswith("_"))
