"""Round trip of a signal between two ranks, against bare atomics between two processes."""

from __future__ import annotations

from ci.bench.row import Context, Row, interleaved
from ci.bench.simulator import job, peers
from ci.bench.simulator.programs import PINGPONG_ROUNDS


def rows(context: Context) -> list[Row]:
    """One row, in nanoseconds a round trip."""
    bare = peers.program(context, "tdist_bench_pingpong", PINGPONG_ROUNDS)
    with job.ranks("pingpong", 2) as ranks:
        value, peer = interleaved(context.repetitions, lambda: ranks.run()[0] * 1000 / PINGPONG_ROUNDS, bare)
    return [Row("pingpong", value, "ns", "C++ atomics of two processes", peer, "at most 3x", most=3)]
