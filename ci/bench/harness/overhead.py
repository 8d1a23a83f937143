"""What a test on two kept ranks costs, against a plain test."""

from __future__ import annotations

import statistics
import xml.etree.ElementTree as ElementTree

from ci.bench.harness.suites import EMPTY, suite
from ci.bench.row import Context, Row

_TESTS = 60
_MOST_MS = 25.0


def rows(_: Context) -> list[Row]:
    """One row, in milliseconds a test, both of one run; the median of many tests."""
    with suite(EMPTY.format(tests=_TESTS)) as made:
        made.run("-q", "--npus=sim:8", "--junit-xml=report.xml")
        cases = list(ElementTree.parse(made.path / "report.xml").iter("testcase"))
    value, peer = (
        statistics.median(1e3 * float(case.get("time", 0)) for case in cases if case.get("name", "").startswith(name))
        for name in ("test_on_ranks", "test_plain")
    )
    goal = f"difference at most {_MOST_MS:g} ms"
    return [Row("overhead", value, "ms", "a plain test", peer, goal, met=value - peer <= _MOST_MS)]
