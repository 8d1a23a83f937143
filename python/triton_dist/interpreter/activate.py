"""Puts our executor into Triton's interpreter, in this process only and without touching an installed file."""

from __future__ import annotations

from triton.runtime import interpreter as stock

from triton_dist.interpreter.builder import Builder
from triton_dist.interpreter.function import InterpretedFunction
from triton_dist.language import _frontend


def activate() -> None:
    """Have `@triton.jit` make functions that our executor runs. Calling it again changes nothing.

    Called right after `import triton` where TRITON_INTERPRET is set and the backend is `sim`: functions that were
    decorated before keep Triton's own executor.
    """
    if isinstance(stock.interpreter_builder, Builder):
        return
    stock.interpreter_builder = Builder()
    # Triton's own library is decorated already. Nothing of it is launched, but kernels call it.
    stock.InterpretedFunction.__call__ = InterpretedFunction.__call__
    stock.InterpretedFunction = InterpretedFunction
    _frontend.interpret_with(stock.interpreter_builder)
