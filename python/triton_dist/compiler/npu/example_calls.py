"""Signatures of kernels from a call that launches them: the call runs, the launches do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from triton_dist.compiler.npu.signatures import Signature
from triton_dist.compiler.options import OPTIONS


@dataclass(frozen=True)
class Launch:
    """A launch as the call made it: kernel, types and constants of its arguments, compiler options."""

    kernel: Any
    signature: Signature
    options: dict[str, Any] = field(default_factory=dict)


class _NotLaunched:
    """What a launch gives in place of a compiled kernel."""


@contextmanager
def recorded() -> Iterator[list[Launch]]:
    """Collect what is launched in the block, each kernel and its arguments once; nothing is compiled or run."""
    launches: list[Launch] = []
    run, autotuned = JITFunction.run, Autotuner.run

    def record(self: Any, *arguments: Any, grid: Any, warmup: bool, **named: Any) -> Any:
        options = {name: value for name, value in named.items() if name in OPTIONS and name not in self.arg_names}

        def compile_(source: Any, **_: Any) -> _NotLaunched:
            constants = {name: source.constants[name] for name in source.constants}
            types = {name: type_ for name, type_ in source.signature.items() if name not in constants}
            launches.append(Launch(self, Signature(types, constants), options))
            return _NotLaunched()

        with _compiling_with(self, compile_):
            return run(self, *arguments, grid=grid, warmup=True, **named)

    def record_each(self: Any, *arguments: Any, **named: Any) -> Any:
        named.pop("warmup", None)
        return self.warmup(*arguments, **named)

    JITFunction.run, Autotuner.run = record, record_each
    try:
        yield launches
    finally:
        JITFunction.run, Autotuner.run = run, autotuned


@contextmanager
def _compiling_with(kernel: Any, compile_: Callable[..., Any]) -> Iterator[None]:
    from triton.compiler import make_backend
    from triton.runtime import driver

    if kernel.binder is None:
        kernel.create_binder(make_backend(driver.active.get_current_target()))
    before, cache = kernel.compile, kernel.cache
    kernel.compile, kernel.cache = compile_, type(cache)(dict)
    try:
        yield
    finally:
        kernel.compile, kernel.cache = before, cache
