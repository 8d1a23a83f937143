"""A cached launch of an empty kernel, against Triton's dispatch to a launcher that does nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ci.bench.row import Context, Row, interleaved

_LAUNCHES = 300


def rows(context: Context) -> list[Row]:
    """One row, in microseconds a launch, from the call in Python to the kernel's end."""
    import torch
    import triton

    from ci.bench.simulator import kernels

    synchronize: Callable[[], None] = torch.npu.synchronize  # type: ignore[attr-defined]
    nowhere = triton.jit(kernels.empty.fn)
    for kernel in (kernels.empty, nowhere):
        kernel[(1,)]()
    synchronize()
    for compiled in nowhere.cache[0].values():
        compiled.run = _nothing
    value, peer = interleaved(context.repetitions, _timed(kernels.empty, synchronize), _timed(nowhere, lambda: None))
    return [Row("launch", value, "us", "Triton's dispatch to nowhere", peer, "at most 2x", most=2)]


def _nothing(*_arguments: Any) -> None:
    pass


def _timed(kernel: Any, synchronize: Callable[[], None]) -> Callable[[], float]:
    def run() -> float:
        start = time.perf_counter()
        for _ in range(_LAUNCHES):
            kernel[(1,)]()
            synchronize()
        return (time.perf_counter() - start) * 1e6 / _LAUNCHES

    return run
