"""The suites that `nox -s bench -- harness` measures: small ones of them run, and give what the rows are made of."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from ci.bench.harness import makespan, suites


def test_kept_ranks_and_spawned_ones_pass_the_same_tests() -> None:
    text = suites.NOTIFY_AND_WAIT.format(tests=1)
    with suites.suite(text) as ours, suites.suite(text) as theirs:
        theirs.write("conftest.py", suites.SPAWNING_CONFTEST)
        assert "1 passed" in ours.run("-q", "-n", "1")[1]
        assert "1 passed" in theirs.run("-q", "-p", "no:triton_dist")[1]


def test_the_summary_is_read() -> None:
    with suites.suite(suites.SLEEPING_AND_COMPUTING.format(tests=8)) as made:
        seconds, output = made.run("-q", "--npus=sim:8", "-n", "2")
    found = makespan.NUMBERS.search(output)
    assert found is not None, output
    lasted, bound = map(float, found.groups())
    assert 0 < bound <= lasted <= seconds
