"""How long tests had NPUs: kept with each test's report, summed up at the end of the run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from triton_dist.testing.leases.pool import Lease

_USES: pytest.StashKey[list[Use]] = pytest.StashKey()
# An attribute of reports. pytest-xdist carries these from workers to the controller.
_ATTRIBUTE = "triton_dist_uses"
# npus, began, ended: what survives the way from an xdist worker.
Use = tuple[int, float, float]


def record_use(item: pytest.Item, lease: Lease) -> None:
    """Notes that `item` has had `lease` until now."""
    npus = len(lease.npus)
    now = time.monotonic()
    item.stash.setdefault(_USES, []).append((npus, lease.since, now))
    # For --junit-xml.
    item.user_properties += [("world_size", npus), ("npus", ",".join(map(str, lease.npus)))]


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
        ranks: how many ranks they started, altogether.
        npu_seconds: the sum over tests of NPUs times seconds.
        makespan: seconds from the first lease to the last one's end.
        longest: the longest lease, in seconds.
        slowest: the test that had NPUs for the longest, how long in seconds, and how many.
    """

    tests: int
    ranks: int
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

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for npus, began, ended in getattr(report, _ATTRIBUTE, ()):
            self._uses.setdefault(report.nodeid, []).append((npus, began, ended))

    def totals(self) -> Totals | None:
        """None if no test had NPUs."""
        uses = [use for of_test in self._uses.values() for use in of_test]
        if not uses:
            return None
        slowest = max(self._uses, key=lambda nodeid: _seconds(self._uses[nodeid]))
        return Totals(
            tests=len(self._uses),
            ranks=sum(npus for npus, _, _ in uses),
            npu_seconds=sum(npus * (ended - began) for npus, began, ended in uses),
            makespan=max(ended for _, _, ended in uses) - min(began for _, began, _ in uses),
            longest=max(ended - began for _, began, ended in uses),
            slowest=(slowest, _seconds(self._uses[slowest]), max(npus for npus, _, _ in self._uses[slowest])),
        )


def _seconds(uses: Sequence[Use]) -> float:
    return sum(ended - began for _, began, ended in uses)


def summary_lines(totals: Totals, npus: int) -> list[str]:
    """The table at the end of a run on `npus` NPUs."""
    head = ("tests", "ranks", "NPU-seconds", "busy", "makespan", "lower bound")
    row = (
        str(totals.tests),
        str(totals.ranks),
        f"{totals.npu_seconds:.1f} s",
        f"{totals.busy(npus):.0%}",
        f"{totals.makespan:.1f} s",
        f"{totals.lower_bound(npus):.1f} s",
    )
    widths = [max(map(len, column)) for column in zip(head, row, strict=True)]
    lines = ["   ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)) for cells in (head, row)]
    nodeid, seconds, count = totals.slowest
    return [*(f" {line}" for line in lines), f" slowest: {nodeid}  {seconds:.1f} s on {count} NPUs"]
