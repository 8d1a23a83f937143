"""How well tests of different sizes fill the NPUs, against the time below which no order can go."""

from __future__ import annotations

import re

from ci.bench.harness.suites import SLEEPING_AND_COMPUTING, suite
from ci.bench.row import Context, Row

_TESTS = 200
NUMBERS = re.compile(r"^ +\d+ +\d+ +[\d.]+ s +\d+% +([\d.]+) s +([\d.]+) s", re.MULTILINE)


def rows(_: Context) -> list[Row]:
    """One row, in seconds, of the second run: the first has no durations to go by."""
    with suite(SLEEPING_AND_COMPUTING.format(tests=_TESTS)) as made:
        for _run in range(2):
            _seconds, output = made.run("-q", "--npus=sim:8", "-n", "8")
    found = NUMBERS.search(output)
    assert found is not None, output
    makespan, bound = map(float, found.groups())
    peer = "max(NPU-seconds / NPUs, longest)"
    return [Row("makespan", makespan, "s", peer, bound, "at most 1.1x", most=1.1)]
