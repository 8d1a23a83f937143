"""What `@triton.jit` makes of a function under TRITON_INTERPRET=1."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from triton.backends.ascend.compiler import NPUOptions
from triton.runtime import interpreter as stock

from triton_dist.interpreter import cores, turns
from triton_dist.interpreter.turns import Launch
from triton_dist.runtime import launches

Grid = Sequence[int] | Callable[[dict[str, Any]], Sequence[int]]

# Options of a compilation: they say nothing to an interpreter.
_OPTIONS = {*stock.RESERVED_KWS, *(field.name for field in fields(NPUOptions))}


class InterpretedFunction(stock.InterpretedFunction):  # type: ignore[misc]
    """A kernel, or a function that kernels call. Its code is Python's, so that debuggers and tracebacks show it."""

    def __init__(self, fn: Callable[..., Any], **options: Any) -> None:
        super().__init__(fn, **options)
        self.run = self._run

    def _run(self, *arguments: Any, grid: Grid, warmup: bool = False, **named: Any) -> None:
        if not warmup:
            self._launch(grid, arguments, named)

    def warmup(self, *arguments: Any, grid: Grid, **named: Any) -> None:
        """Does nothing: there is nothing to compile."""

    def __getitem__(self, grid: Grid) -> Callable[..., None]:
        return lambda *arguments, **named: self._launch(grid, arguments, named)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Runs as a part of the kernel that calls it.

        Raises:
            RuntimeError: no kernel runs.
        """
        if turns.running() is None:
            raise RuntimeError(f"{self.__name__} is a kernel: launch it with {self.__name__}[grid](...)")
        stock._patch_lang(self.fn)
        return self.rewrite()(*arguments, **named)

    def _launch(self, grid: Grid, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        kept = {
            name: value
            for name, value in named.items()
            if name in self.arg_names or (name not in _OPTIONS and name != "warmup")
        }
        code = self.rewrite()
        stock._patch_lang(self.fn)
        bound = inspect.getcallargs(code, *arguments, **kept)
        extents = tuple(int(extent) for extent in (grid(bound) if callable(grid) else grid))
        if not 1 <= len(extents) <= 3 or min(extents) < 0:
            raise ValueError(f"{self.__name__}: grid {extents} must have one to three extents, none of them negative")
        constants = _constants(self.fn)
        values = {
            # Where the memory is: what is written is there at once, for other programs and other ranks too.
            name: value if name in constants else stock._implicit_cvt(value)
            for name, value in bound.items()
        }
        # Streams may still have transfers to do that were asked for before.
        launches.synchronize()
        x, y, z = (*extents, 1, 1)[:3]
        Launch(self.__name__, lambda: code(**values), (x, y, z), cores.of(self), cores.uses_cube(self)).run()


def _constants(function: Callable[..., Any]) -> set[str]:
    return {name for name, annotation in function.__annotations__.items() if "constexpr" in str(annotation)}
