"""Which kernels must be tuned by all ranks together: those that reach other ranks."""

from __future__ import annotations

import ast
import inspect
import textwrap
from types import FunctionType
from typing import Any

# They say who this rank is, or order what is there already; a kernel with these alone is a local one.
_LOCAL = frozenset({"rank", "num_ranks", "my_pe", "n_pes", "team_my_pe", "team_n_pes", "consume_token", "extern_call"})


def base(kernel: Any) -> FunctionType:
    """The Python function inside tuners, heuristics and @triton.jit."""
    while not isinstance(kernel, FunctionType):
        kernel = kernel.fn
    return kernel


def reaches_others(kernel: Any) -> bool:
    """Whether `kernel`, or a function that it calls, calls a primitive that reads, writes or waits for other ranks.

    Told from the source alone, so that all ranks say the same, also where the kernel compiles on some of them only.
    """
    seen: set[FunctionType] = set()
    todo = [base(kernel)]
    while todo:
        function = todo.pop()
        if function in seen:
            continue
        seen.add(function)
        for called in _calls(function):
            if _is_of_language(called) and called.__name__ not in _LOCAL:
                return True
            if isinstance(getattr(called, "fn", None), FunctionType):  # with @triton.jit
                todo.append(called.fn)
    return False


def _is_of_language(called: Any) -> bool:
    """Whether it is a primitive for work with other ranks; those of triton.language.extra.cann stay on one NPU."""
    # Not at the top: this module is loaded with Triton, before a program has asked for the language.
    from triton_dist.language._frontend import PRIMITIVE

    return bool(getattr(called, PRIMITIVE, False)) and called.__module__.startswith("triton_dist.language.")


def _calls(function: FunctionType) -> list[Any]:
    """The objects that the source of `function` calls by a name or a dotted name."""
    names = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
    source = textwrap.dedent(inspect.getsource(function))
    calls = (node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return [found for call in calls if (found := _resolve(call, names)) is not None]


def _resolve(node: ast.expr, names: dict[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        return getattr(_resolve(node.value, names), node.attr, None)
    return None
