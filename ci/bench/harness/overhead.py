"""What a test on two kept ranks costs, against a plain test."""

from __future__ import annotations

import json
import statistics

from ci.bench.harness.suites import EMPTY, RECORDING_CONFTEST, suite
from ci.bench.row import Context, Row

_TESTS = 60
_MOST_MS = 25.0


def rows(_: Context) -> list[Row]:
    """One row, in milliseconds a test, both of one run; the median of many tests."""
    with suite(EMPTY.format(tests=_TESTS)) as made:
        made.write("conftest.py", RECORDING_CONFTEST)
        made.run("-q", "--npus=sim:8")
        seconds: dict[str, float] = json.loads((made.path / "seconds.json").read_text())
    value, peer = (
        1e3 * statistics.median(taken for test, taken in seconds.items() if test.startswith(name))
        for name in ("test_on_ranks", "test_plain")
    )
    goal = f"difference at most {_MOST_MS:g} ms"
    return [Row("overhead", value, "ms", "a plain test", peer, goal, met=value - peer <= _MOST_MS)]
