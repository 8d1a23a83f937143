"""What each rank of a benchmark does: a function sets up, and gives the one that is run and timed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PINGPONG_ROUNDS = 10_000
PROGRAMS = 40
RING_ROUNDS = 1000
BARRIERS = 50
RANK_RING_ROUNDS = 10


def _words(count: int, rank: int) -> Any:
    import shmem as ash
    import torch

    from ci.bench.simulator.kernels import SLOT

    return ash.aclshmem_create_tensor([count * SLOT], dtype=torch.int64, device_id=rank).zero_()


def _timed(launch: Callable[[int], None], rounds: int) -> Callable[[], float]:
    """Microseconds of a launch that takes `rounds` signals on; all ranks begin together. The first compiles."""
    import shmem as ash
    import torch

    base = 16  # not 1, of which Triton makes a constant

    def run() -> float:
        nonlocal base
        ash.aclshmem_barrier_all()
        start = time.perf_counter()
        launch(base)
        torch.npu.synchronize()  # type: ignore[attr-defined]
        base += rounds
        return (time.perf_counter() - start) * 1e6

    run()
    return run


def pingpong(rank: int, _world_size: int) -> Callable[[], float]:
    """Microseconds a launch of PINGPONG_ROUNDS round trips."""
    from ci.bench.simulator import kernels

    words = _words(1, rank)
    return _timed(lambda base: kernels.pingpong[(1,)](words, base, PINGPONG_ROUNDS), PINGPONG_ROUNDS)


def fibers(rank: int, _world_size: int) -> Callable[[], float]:
    """Microseconds a launch of RING_ROUNDS rounds among PROGRAMS programs."""
    from ci.bench.simulator import kernels

    words = _words(PROGRAMS, rank)
    return _timed(
        lambda base: kernels.ring_of_programs[(PROGRAMS,)](words, base, RING_ROUNDS, kernels.SLOT), RING_ROUNDS
    )


def barrier_and_ring(rank: int, _world_size: int) -> Callable[[], dict[str, float]]:
    """Microseconds a barrier and a hop of a ring, and this rank's memory in bytes."""
    from ci.bench.simulator import kernels

    words = _words(1, rank)
    meet = _timed(lambda _: kernels.barriers[(1,)](BARRIERS), 0)
    relay = _timed(lambda base: kernels.ring_of_ranks[(1,)](words, base, RANK_RING_ROUNDS), RANK_RING_ROUNDS)
    return lambda: {"barrier": meet() / BARRIERS, "ring": relay() / RANK_RING_ROUNDS, "memory": _memory()}


def _memory() -> int:
    """Bytes of memory of this process; pages that several share are divided among them."""
    text = Path("/proc/self/smaps_rollup").read_text()
    found = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024
