"""How long tests had NPUs: kept with each test's report, summed up at the end of the run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from triton_dist.testing.scheduling.history import Past

_USES: pytest.StashKey[list[Use]] = pytest.StashKey()
# An attribute of reports. pytest-xdist carries these from workers to the controller.
_ATTRIBUTE = "triton_dist_uses"
# NPUs, beginning, end, ranks that had served before: what survives the way from an xdist worker.
Use = tuple[int, float, float, int]


def record_use(
    item: pytest.Item, npus: Sequence[object], since: float, *, reused: int = 0, seed: int | None = None
) -> None:
    """Notes that `item` has had `npus` from a moment of the monotonic clock, in seconds, until now.

    Args:
        reused: how many of its ranks had served another test before.
        seed: of their random numbers.
    """
    item.stash.setdefault(_USES, []).append((len(npus), since, time.monotonic(), reused))
    # For --junit-xml.
    worker = getattr(item.config, "workerinput", {}).get("workerid", "master")
    properties = [("world_size", len(npus)), ("npus", ",".join(map(str, npus))), ("worker", worker)]
    item.user_properties += properties + ([("seed", seed)] if seed is not None else [])


def attach_uses(item: pytest.Item, report: pytest.TestReport) -> None:
    """Moves what was noted of `item` to `report`."""
    uses = item.stash.get(_USES, [])
    if uses:
        setattr(report, _ATTRIBUTE, [list(use) for use in uses])
        item.stash[_USES] = []


@dataclass(frozen=True)
class Totals:
    """What a run's tests took of its NPUs.

    Attributes:
        tests: how many tests had NPUs.
        ranks: how many ranks they had, altogether.
        reused: how many of these were processes that had served another test before.
        npu_seconds: the sum over tests of NPUs times seconds.
        makespan: seconds from the first lease to the last one's end.
        longest: the longest lease, in seconds.
        slowest: the test that had NPUs for the longest, how long in seconds, and how many.
    """

    tests: int
    ranks: int
    reused: int
    npu_seconds: float
    makespan: float
    longest: float
    slowest: tuple[str, float, int]

    def lower_bound(self, npus: int) -> float:
        """Seconds that no order of the tests on `npus` NPUs can go below."""
        return max(self.npu_seconds / npus, self.longest)

    def busy(self, npus: int) -> float:
        """The share of `npus` NPUs over the makespan that tests had, from 0 to 1."""
        return self.npu_seconds / (npus * self.makespan) if self.makespan else 0.0


class UsageRecorder:
    """Collects uses from reports; a pytest plugin of the process that sees all reports."""

    def __init__(self) -> None:
        self._uses: dict[str, list[Use]] = {}
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self._failed.add(report.nodeid)
        for npus, began, ended, reused in getattr(report, _ATTRIBUTE, ()):
            self._uses.setdefault(report.nodeid, []).append((npus, began, ended, reused))

    def past(self) -> dict[str, Past]:
        """What tests that passed took; nothing if none of the run's tests had NPUs."""
        if not self._uses:
            return {}
        past = {}
        for nodeid, seconds in self._seconds.items():
            uses = self._uses.get(nodeid, [])
            if nodeid not in self._failed:
                npus = max((npus for npus, *_ in uses), default=0)
                past[nodeid] = Past(npus, _seconds(uses) if uses else seconds)
        return past

    def totals(self) -> Totals | None:
        """None if no test had NPUs."""
        uses = [use for of_test in self._uses.values() for use in of_test]
        if not uses:
            return None
        slowest = max(self._uses, key=lambda nodeid: _seconds(self._uses[nodeid]))
        return Totals(
            tests=len(self._uses),
            ranks=sum(npus for npus, *_ in uses),
            reused=sum(reused for *_, reused in uses),
            npu_seconds=sum(npus * (ended - began) for npus, began, ended, _ in uses),
            makespan=max(ended for _, _, ended, _ in uses) - min(began for _, began, *_ in uses),
            longest=max(ended - began for _, began, ended, _ in uses),
            slowest=(slowest, _seconds(self._uses[slowest]), max(npus for npus, *_ in self._uses[slowest])),
        )


def _seconds(uses: Sequence[Use]) -> float:
    return sum(ended - began for _, began, ended, _ in uses)


def summary_lines(totals: Totals, npus: int) -> list[str]:
    """The table at the end of a run on `npus` NPUs."""
    head = ("tests", "ranks", "NPU-seconds", "busy", "makespan", "lower bound", "warm ranks reused")
    row = (
        str(totals.tests),
        str(totals.ranks),
        f"{totals.npu_seconds:.1f} s",
        f"{totals.busy(npus):.0%}",
        f"{totals.makespan:.1f} s",
        f"{totals.lower_bound(npus):.1f} s",
        f"{totals.reused} of {totals.ranks}",
    )
    widths = [max(map(len, column)) for column in zip(head, row, strict=True)]
    lines = ["   ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)) for cells in (head, row)]
    nodeid, seconds, count = totals.slowest
    return [*(f" {line}" for line in lines), f" slowest: {nodeid}  {seconds:.1f} s on {count} NPUs"]
