"""The order of a run's tests: several are tried on paper, and the one that ends first is taken.

Long tests first leaves short ones to fill the end; large ones first leaves no test waiting for all NPUs to fall idle.
Which of the two matters more depends on the tests, and costs little to find out.
"""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Planned:
    """A test to be placed.

    Attributes:
        index: its place in the collection.
        npus: how many it wants.
        seconds: how long it is expected to take; None where nobody knows.
    """

    index: int
    npus: int
    seconds: float | None


def planned_order(tests: Sequence[Planned], npus: int, workers: int) -> list[int]:
    """The indices of `tests` in the order in which they should start.

    Args:
        npus: how many NPUs the run has.
        workers: how many tests can run at once.
    """
    known = [test.seconds for test in tests if test.seconds is not None]
    guess = statistics.median(known) if known else 1.0

    def seconds(test: Planned) -> float:
        return guess if test.seconds is None else test.seconds

    rules: list[Callable[[Planned], tuple[float, ...]]] = [
        lambda test: (-test.npus, -seconds(test)),
        lambda test: (-seconds(test), -test.npus),
        lambda test: (-seconds(test) * max(test.npus, 0.5), -test.npus),
    ]
    orders = [sorted(tests, key=rule) for rule in rules]
    best = min(orders, key=lambda order: makespan([(t.npus, seconds(t)) for t in order], npus, workers))
    return [test.index for test in best]


def makespan(tests: Sequence[tuple[int, float]], npus: int, workers: int) -> float:
    """Seconds that (NPUs, seconds) `tests` take if they start in this order, none before the one in front of it."""
    now = 0.0
    free, idle = npus, workers
    running: list[tuple[float, int]] = []
    for wanted, seconds in tests:
        wanted = min(wanted, npus)
        while free < wanted or not idle:
            now, given_back = heapq.heappop(running)
            free += given_back
            idle += 1
        free -= wanted
        idle -= 1
        heapq.heappush(running, (now + seconds, wanted))
    return max((ended for ended, _ in running), default=now)
