"""The fixture dist_test where all goes well: what ranks find around them, and what is reported."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from .conftest import Suite

SURROUNDINGS = """
import os, random, socket, sys
import pytest
import torch
import torch.distributed as dist
from helpers.numbers import seven

VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TRITON_DIST_SIM_NPUS")

def surroundings(rank, world_size, folder, *more):
    assert more == (1, "two", [3])
    assert dist.get_rank() == rank and dist.get_world_size() == world_size and dist.get_backend() == "gloo"
    assert [os.environ[name] for name in VARIABLES] == [str(rank), str(world_size)] * 2 + [str(world_size)]
    assert os.environ["MASTER_ADDR"] == "127.0.0.1"
    assert os.environ["MASTER_PORT"] == os.environ["TRITON_DIST_MASTER_PORT"]
    if rank == 0:
        # Left to the test: the ranks have met without TCP, and without the look-ups in DNS that torch's store does.
        socket.create_server(("127.0.0.1", int(os.environ["MASTER_PORT"]))).close()
    assert len(os.environ["TRITON_DIST_SESSION"]) >= 32
    assert os.environ["FROM_THE_TEST"] == "yes" and os.getcwd() == str(folder)
    assert torch.get_num_threads() == 1
    assert sys.stdin.read() == ""
    total = torch.ones(4) * rank
    dist.all_reduce(total)
    assert total.tolist() == [sum(range(world_size))] * 4
    # Collectives of later groups and a backward hang where the parent has run an operator before the fork.
    dist.barrier(dist.new_group(list(range(world_size))))
    (torch.ones(64, 64, requires_grad=True) @ torch.ones(64, 64)).sum().backward()
    with open(f"{rank}", "w") as file:
        file.write(f"{os.environ['TRITON_DIST_SESSION']} {random.random()}")
    assert seven() == 7

@pytest.mark.dist
@pytest.mark.parametrize("world_size", [1, 2, 8])
def test_surroundings(dist_test, tmp_path, monkeypatch, world_size):
    monkeypatch.setenv("FROM_THE_TEST", "yes")
    monkeypatch.chdir(tmp_path)
    dist_test(surroundings, world_size=world_size, backend="gloo", args=(tmp_path, 1, "two", [3]))
    written = [tuple((tmp_path / str(rank)).read_text().split()) for rank in range(world_size)]
    assert len({session for session, _ in written}) == 1
    assert len({number for _, number in written}) == world_size
    assert "TRITON_DIST_SESSION" not in os.environ

class TestInAClass:
    @staticmethod
    def counts(rank, world_size):
        assert world_size == 3
        print("rank", rank, "was here")

    @pytest.mark.dist(world_size=3)
    def test_world_size_of_the_marker(self, dist_test):
        dist_test(self.counts, backend="gloo")

def two(rank, world_size):
    assert world_size == 2

def test_two_ranks_by_default(dist_test):
    dist_test(two, backend="gloo")
"""


@pytest.mark.parametrize("mode", ["prepend", "importlib"])
def test_what_ranks_find(suite: Suite, mode: str) -> None:
    suite.write("pytest.ini", "[pytest]\npythonpath = lib\n")
    suite.write("lib/helpers/numbers.py", "def seven():\n    return 7\n")
    suite.write("sub/__init__.py", "")
    suite.write("sub/test_surroundings.py", SURROUNDINGS)
    result = suite.run("-rP", f"--import-mode={mode}", "--strict-markers", "--junit-xml=report.xml", "-vv")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["NPUs: 8 simulated (Ascend910B3)"])
    # Output of passed tests is there for who asks for it.
    result.stdout.fnmatch_lines(["*stdout of rank 2*", "rank 2 was here"])
    result.stdout.fnmatch_lines(
        [
            "*= NPUs: 8 simulated (Ascend910B3) =*",
            "*tests*ranks*NPU-seconds*busy*makespan*lower bound*",
            "*5      16 *",
            "*slowest: sub/test_surroundings.py::*",
        ]
    )
    assert properties(suite.path / "report.xml")["test_world_size_of_the_marker"]["world_size"] == "3"


def properties(report: Path) -> dict[str, dict[str, str]]:
    return {
        case.get("name", ""): {p.get("name", ""): p.get("value", "") for p in case.iter("property")}
        for case in ElementTree.parse(report).iter("testcase")
    }


CONFTEST = """
import pytest

def from_conftest():
    return 3

class Parameter:
    def __init__(self, value):
        self.value = value
"""

NEIGHBOURS = """
import pytest
from conftest import Parameter, from_conftest

def worker(rank, world_size, parameter):
    assert from_conftest() == parameter.value

def test_helpers_of_a_conftest(dist_test):
    dist_test(worker, world_size=1, backend="gloo", args=(Parameter(3),))
"""

SAME_NAME = """
def worker(rank, world_size):
    assert __name__.endswith("test_same")
    from sub{this}.constants import VALUE
    assert VALUE == {this}

def test_{this}(dist_test):
    dist_test(worker, world_size=1, backend="gloo")
"""


def test_modules_are_the_ones_that_pytest_found(suite: Suite) -> None:
    suite.write("conftest.py", CONFTEST)
    suite.write("test_neighbours.py", NEIGHBOURS)
    for this in (1, 2):
        suite.write(f"sub{this}/__init__.py", "")
        suite.write(f"sub{this}/constants.py", f"VALUE = {this}\n")
        suite.write(f"sub{this}/test_same.py", SAME_NAME.format(this=this))
    suite.run().assert_outcomes(passed=3)


SIDE_BY_SIDE = """
import os, time
import pytest

def worker(rank, world_size, folder):
    began = time.monotonic()
    time.sleep(0.5)
    with open(f"{folder}/log", "a") as file:
        file.write(f"{world_size} {began} {time.monotonic()}\\n")

@pytest.mark.dist
@pytest.mark.parametrize("world_size", [1, 2, 2, 3, 4, 8, 1, 2])
def test_it(dist_test, world_size):
    dist_test(worker, world_size=world_size, backend="gloo", args=(os.path.dirname(__file__),))
"""


def test_workers_and_runs_share_the_npus(suite: Suite) -> None:
    """Two pytest processes at once, one of them with workers: ranks overlap, but never more than there are NPUs."""
    suite.write("test_side_by_side.py", SIDE_BY_SIDE)
    other = suite.start()
    one = suite.start("-n", "2")
    outputs = [process.communicate(timeout=240)[0] for process in (one, other)]
    print(*outputs)
    suite.check_nothing_left(0.5)
    assert all("8 passed" in output for output in outputs)
    assert any(line.split()[:2] == ["8", "23"] for line in outputs[0].splitlines()), "the workers' numbers are lost"
    spans = [tuple(map(float, line.split())) for line in (suite.path / "log").read_text().splitlines()]
    assert len(spans) == 2 * 23
    at_once = [sum(began <= at < ended for _, began, ended in spans) for _, at, _ in spans]
    assert max(at_once) <= 8
    assert max(at_once[i] > spans[i][0] for i in range(len(spans))), (
        "no two tests ran side by side, though there was room"
    )
