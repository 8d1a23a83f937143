"""40 programs in a ring of waits, against 40 threads."""

from __future__ import annotations

from ci.bench.row import Context, Row, interleaved
from ci.bench.simulator import job, peers
from ci.bench.simulator.programs import RING_ROUNDS


def rows(context: Context) -> list[Row]:
    """One row, in microseconds for all rounds."""
    threads = peers.program(context, "tdist_bench_ring", RING_ROUNDS)
    with job.ranks("fibers", 1) as ranks:
        value, peer = interleaved(context.repetitions, lambda: ranks.run()[0], threads)
    return [Row("fibers", value, "us", "40 C++ threads", peer, "at least 5x faster", most=1 / 5)]
