"""How barriers, rings and memory grow with the number of ranks."""

from __future__ import annotations

import statistics
from contextlib import ExitStack

from ci.bench.row import Context, Row
from ci.bench.simulator import job

_FEWEST = 2
_WORLD_SIZES = (_FEWEST, 8, 16, 64)
_MEBIBYTE = 1 << 20
_ALL_RANKS_MIB = 4096


def rows(context: Context) -> list[Row]:
    """Three rows for each number of ranks: microseconds a barrier, microseconds a round of a ring, MiB a rank."""
    samples: dict[int, list[list[dict[str, float]]]] = {size: [] for size in _WORLD_SIZES}
    with ExitStack() as stack:
        jobs = {size: stack.enter_context(job.ranks("barrier_and_ring", size)) for size in _WORLD_SIZES}
        for _ in range(context.repetitions):
            for size, ranks in jobs.items():
                samples[size].append(ranks.run())
    return [row for size in _WORLD_SIZES[1:] for row in _rows(size, samples)]


def _rows(size: int, samples: dict[int, list[list[dict[str, float]]]]) -> list[Row]:
    def median(what: str, ranks: int) -> float:
        return statistics.median(run[0][what] for run in samples[ranks])

    def mebibytes(ranks: int) -> float:
        return statistics.median(sum(rank["memory"] for rank in run) for run in samples[ranks]) / ranks / _MEBIBYTE

    peer = f"{_FEWEST} ranks"
    together = mebibytes(size) * size
    goal = f"all fit in {_ALL_RANKS_MIB // 1024} GiB"
    return [
        Row(f"ranks_{size}_barrier", median("barrier", size), "us", peer, median("barrier", _FEWEST), "shown"),
        Row(f"ranks_{size}_ring", median("ring", size), "us", peer, median("ring", _FEWEST), "shown"),
        Row(
            f"ranks_{size}_memory",
            mebibytes(size),
            "MiB",
            peer,
            mebibytes(_FEWEST),
            goal,
            met=together <= _ALL_RANKS_MIB,
        ),
    ]
