"""In which order tests go to xdist's workers."""

from __future__ import annotations

import itertools
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_dist.testing.scheduling.order import Planned, makespan, planned_order

from .conftest import Suite

TESTS = st.lists(st.tuples(st.integers(0, 8), st.floats(0.01, 10)), max_size=30)


@given(TESTS, st.integers(8, 16), st.integers(1, 9))
def test_an_order_has_every_test_once_and_is_no_worse_than_the_usual_rules(
    tests: list[tuple[int, float]], npus: int, workers: int
) -> None:
    order = planned_order([Planned(i, *test) for i, test in enumerate(tests)], npus, workers)
    assert sorted(order) == list(range(len(tests)))
    planned = makespan([tests[i] for i in order], npus, workers)
    area = sum(wanted * seconds for wanted, seconds in tests) / npus
    assert planned >= max([area, *(seconds for _, seconds in tests)]) - 1e-6
    longest_first = sorted(tests, key=lambda test: (-test[1], -test[0]))
    largest_first = sorted(tests, key=lambda test: (-test[0], -test[1]))
    for other in (longest_first, largest_first):
        assert planned <= makespan(other, npus, workers) + 1e-6


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 5)), max_size=6))
def test_makespan_is_what_starting_in_order_takes(tests: list[tuple[int, int]]) -> None:
    """Compared with a clock that ticks: none starts before the one in front of it."""
    npus, workers = 4, 3
    waiting = list(tests)
    running: list[list[int]] = []
    for now in itertools.count():
        running = [entry for entry in running if entry[1] > now]
        while waiting and len(running) < workers and sum(wanted for wanted, _ in running) + waiting[0][0] <= npus:
            wanted, seconds = waiting.pop(0)
            running.append([wanted, now + seconds])
        if not waiting and not running:
            break
    assert makespan([(wanted, float(seconds)) for wanted, seconds in tests], npus, workers) == now


def test_a_long_small_test_does_not_come_last() -> None:
    tests = [Planned(i, 8, 1.0) for i in range(4)] + [Planned(4, 1, 9.0)]
    order = planned_order(tests, npus=9, workers=2)
    assert order[0] == 4


def test_without_durations_large_tests_come_first() -> None:
    order = planned_order([Planned(0, 1, None), Planned(1, 8, None), Planned(2, 2, None)], npus=8, workers=8)
    assert order == [1, 2, 0]


SIZES = """
import time
import pytest

def worker(rank, world_size, seconds=0):
    time.sleep(seconds)

@pytest.mark.dist
@pytest.mark.parametrize("world_size", [1, 4, 2])
def test_parameter(dist_test, world_size):
    dist_test(worker, world_size=world_size, backend="gloo")

@pytest.mark.dist(world_size=8)
def test_marker(dist_test):
    dist_test(worker, backend="gloo")

@pytest.mark.dist
def test_known_by_the_call(dist_test):
    dist_test(worker, world_size=3, backend="gloo")

def test_plain():
    pass
"""


def started(output: str) -> list[str]:
    """The tests of a run of xdist with -v, in the order in which they started."""
    return re.findall(r"^test_sizes.py::(\S+) *$", output, re.MULTILINE)


def test_largest_first_and_sizes_are_learned(suite: Suite) -> None:
    suite.write("test_sizes.py", SIZES)
    usual = ("-p", "cacheprovider", "-n", "1", "-v", "--color=no")
    output = suite.run(*usual).stdout.str()
    assert "scheduling tests via NpuScheduling" in output
    order = started(output)
    assert order[:3] == ["test_marker", "test_parameter[4]", "test_parameter[2]"]
    assert order[-1] == "test_plain"
    (file,) = (suite.path / ".pytest_cache").rglob("tests")
    remembered = json.loads(file.read_text())
    past = {nodeid.partition("::")[2]: npus for nodeid, (npus, _) in remembered.items()}
    assert past == {
        "test_parameter[1]": 1,
        "test_parameter[4]": 4,
        "test_parameter[2]": 2,
        "test_marker": 8,
        "test_known_by_the_call": 3,
        "test_plain": 0,
    }
    # The size that only the call knows is known now, and decides among tests that take equally long.
    file.write_text(json.dumps({nodeid: [npus, 1.0] for nodeid, (npus, _) in remembered.items()}))
    order = started(suite.run(*usual).stdout.str())
    assert order.index("test_known_by_the_call") < order.index("test_parameter[2]")


@pytest.mark.parametrize("mode", ["load", "loadfile", "worksteal"])
def test_a_mode_that_the_user_chose_stays(suite: Suite, mode: str) -> None:
    suite.write("test_sizes.py", SIZES)
    result = suite.run("-n", "1", f"--dist={mode}", "-v", "-k", "plain or marker")
    result.assert_outcomes(passed=2)
    assert "NpuScheduling" not in result.stdout.str()
