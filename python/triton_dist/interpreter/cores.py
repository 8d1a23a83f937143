"""How many programs of an interpreted kernel are in flight at once."""

from __future__ import annotations

import types
from typing import Any

from triton.runtime import interpreter as stock

from triton_dist.runtime import soc

_CUBE_OPERATIONS = {"dot", "dot_scaled"}


def of(kernel: stock.InterpretedFunction) -> int:
    """The number of cores of the simulated SoC that the kernel runs on: cube cores if it uses `tl.dot`, else vector."""
    return soc.simulated().count_of(soc.of_program("mix" if uses_cube(kernel) else "aiv"))


def uses_cube(kernel: stock.InterpretedFunction) -> bool:
    """Whether the kernel, or a function that it calls, uses `tl.dot`."""
    return _uses_cube(kernel.fn, set())


def _uses_cube(function: Any, seen: set[types.CodeType]) -> bool:
    code = function.__code__
    if code in seen:
        return False
    seen.add(code)
    if _CUBE_OPERATIONS.intersection(code.co_names):
        return True
    callees = (function.__globals__.get(name) for name in code.co_names)
    return any(_uses_cube(callee.fn, seen) for callee in callees if isinstance(callee, stock.InterpretedFunction))
