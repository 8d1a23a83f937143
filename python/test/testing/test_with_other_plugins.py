"""pytest's own options, and other plugins, with multi-rank tests."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest

from triton_dist import env

from .conftest import ALWAYS, PATIENCE, Suite
from .test_failures import section
from .test_ranks import properties

TESTS = """
import os, random, time
import pytest

def passes(rank, world_size, number=0):
    print("rank", rank, "passes")

def fails(rank, world_size):
    value = 41 + rank
    assert value == 42, "of rank 1"

@pytest.mark.dist
def test_one(dist_test):
    dist_test(passes, backend="gloo")

@pytest.mark.dist
def test_two(dist_test):
    dist_test(fails, backend="gloo")

@pytest.mark.dist
def test_three(dist_test):
    dist_test(passes, backend="gloo")
"""


def test_exitfirst_last_failed_and_selection(suite: Suite) -> None:
    suite.write("test_it.py", TESTS)
    suite.run("-p", "cacheprovider", "-x").assert_outcomes(passed=1, failed=1)
    suite.run("-p", "cacheprovider", "--lf").assert_outcomes(failed=1)
    suite.run("-k", "one or three").assert_outcomes(passed=2)


def test_without_capture_ranks_print_at_once(suite: Suite) -> None:
    suite.write("test_it.py", TESTS)
    result = suite.run("-s", "-k", "one")
    assert sorted(re.findall(r"rank \d passes", result.stdout.str())) == ["rank 0 passes", "rank 1 passes"]


DURATIONS = """
import time
import pytest

def sleeps(rank, world_size, seconds):
    time.sleep(seconds)

@pytest.mark.dist
def test_long(dist_test):
    dist_test(sleeps, world_size=8, backend="gloo", args=(4,))

@pytest.mark.dist
@pytest.mark.timeout(15)
def test_waits_for_it(dist_test):
    dist_test(sleeps, world_size=8, backend="gloo", args=(4,))

@pytest.mark.dist
@pytest.mark.timeout(3)
def test_hangs(dist_test):
    dist_test(sleeps, world_size=1, backend="gloo", args=(1000,))
"""


def test_a_limit_of_pytest_timeout_is_reported_with_the_ranks_stacks(suite: Suite) -> None:
    suite.write("test_it.py", DURATIONS)
    result = suite.run("--timeout=1000", "-k", "hangs", "--color=no")
    result.assert_outcomes(failed=1)
    told = section(result.stdout.str(), "test_hangs")
    assert told.startswith("time-out: rank 0 of 1 was not done 3 s after the test got its NPUs\n")
    assert "in sleeps\n    time.sleep(seconds)" in told


RERUN = """
import os
import pytest

def fails_once(rank, world_size, file):
    if rank == 0 and not os.path.exists(file):
        open(file, "w").close()
        assert False

@pytest.mark.dist
@pytest.mark.flaky(reruns=2)
def test_flaky(dist_test, request):
    dist_test(fails_once, backend="gloo", args=(os.path.dirname(__file__) + "/flag",))
"""


def test_reruns(suite: Suite) -> None:
    suite.write("test_it.py", RERUN)
    output = suite.run().stdout.str()
    assert "1 passed, 1 rerun" in output


RANDOM = """
import random
import pytest

def prints(rank, world_size):
    print("number", rank, random.random())

@pytest.mark.dist
def test_random(dist_test):
    dist_test(prints, backend="gloo")
"""


def test_ranks_repeat_their_random_numbers_with_the_seed_of_pytest_randomly(suite: Suite) -> None:
    suite.write("test_it.py", RANDOM)
    outputs = [
        suite.run("-p", "randomly", "-rP", f"--randomly-seed={seed}", "--junit-xml=report.xml").stdout.str()
        for seed in (5, 5, 6)
    ]
    numbers = [sorted(re.findall(r"number \d [\d.e-]+", output)) for output in outputs]
    assert len(set(numbers[0])) == 2
    assert numbers[0] == numbers[1] != numbers[2]
    assert "seed" in properties(suite.path / "report.xml")["test_random"]


COVERED = """
import pytest
import measured

@pytest.mark.dist
@pytest.mark.parametrize("number", range(2))
def test_covered(dist_test, number):
    dist_test(measured.worker, backend="gloo")
"""

MEASURED = """
def worker(rank, world_size):
    if rank == 0:
        zero = 0
    else:
        one = 1
    if rank == 7:
        never = 7
"""


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_what_ranks_run_is_covered(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.write("measured.py", MEASURED)
    suite.write("test_it.py", COVERED)
    result = suite.run("--cov=measured", "--cov-report=term-missing", *workers)
    result.assert_outcomes(passed=2)
    (line,) = [line for line in result.stdout.str().splitlines() if line.startswith("measured.py")]
    assert line.split()[-1] == "8", line
    assert [name for name in os.listdir(suite.path) if name.startswith(".coverage.")] == []


def at_a_terminal(suite: Suite, typed: str, *args: str) -> str:
    """What pytest shows at a terminal at which the user types a text."""
    ours, theirs = pty.openpty()
    environ = env.child_environ(TRITON_DIST_LEASE_DIR=suite.leases, PYTEST_ADDOPTS=None, TERM="dumb")
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *ALWAYS, "--color=no", *args],
        cwd=suite.path,
        env=environ,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    process.wait(PATIENCE)
    os.close(ours)
    text = shown.decode().replace("\r\n", "\n")
    print(text)
    return text


def test_pdb_opens_in_the_chosen_rank(suite: Suite) -> None:
    suite.write("test_it.py", TESTS)
    shown = at_a_terminal(suite, "p 'value', value, rank\nq\n", "--pdb", "--pdb-rank=0", "-k", "two")
    assert ">>> rank 0 of 2 stopped: AssertionError: of rank 1" in shown
    assert "('value', 41, 0)" in shown
    assert shown.count("(Pdb") == shown.count("(Pdb rank 0)")
    assert "1 failed" in shown


ONE_FAILS = """
import pytest
import torch.distributed as dist

def fails(rank, world_size):
    assert rank == 0
    dist.barrier()

@pytest.mark.dist
def test_it(dist_test):
    mine = 5
    dist_test(fails, backend="gloo")
"""


def test_without_a_debugger_in_a_rank_pdb_stops_in_the_test_and_says_how_to_have_one(suite: Suite) -> None:
    suite.write("test_it.py", ONE_FAILS)
    shown = at_a_terminal(suite, "p 'here', mine\nq\n", "--pdb")
    assert "(no debugger in a rank: rank 0 did not fail; --pdb-rank=1 opens it in rank 1)\n" in shown
    assert "('here', 5)" in shown
    assert shown.count("(Pdb") == shown.count("(Pdb) ")


BREAKPOINT = """
import pytest

def stops(rank, world_size):
    secret = 40 + 2
    if rank == 1:
        breakpoint()

@pytest.mark.dist(timeout=30)
def test_stops(dist_test):
    dist_test(stops, backend="gloo")
"""


def test_breakpoints_stop_at_the_terminal(suite: Suite) -> None:
    suite.write("test_it.py", BREAKPOINT)
    shown = at_a_terminal(suite, "p 'secret', secret\nc\n")
    assert ">>> rank 1 of 2 stopped: breakpoint" in shown
    assert "('secret', 42)" in shown
    assert "1 passed" in shown


def test_artifacts(suite: Suite) -> None:
    suite.write(
        "test_it.py",
        TESTS + "\ndef test_prints(dist_test):\n    dist_test(prints, backend='gloo')\n"
        "def prints(rank, world_size):\n    print('said by', rank)\n    assert rank\n",
    )
    result = suite.run("--dist-artifacts=kept", "-k", "prints or one", "--junit-xml=report.xml")
    result.assert_outcomes(passed=1, failed=1)
    (folder,) = (suite.path / "kept").iterdir()
    assert folder.name == "test_it.py--test_prints"
    assert (folder / "report.txt").read_text().startswith("rank 0 of 2: assert 0")
    # Also of ranks whose output the terminal does not show.
    assert [(folder / f"rank-{rank}.stdout.txt").read_text() for rank in range(2)] == ["said by 0\n", "said by 1\n"]
    told = properties(suite.path / "report.xml")["test_prints"]
    assert told["world_size"] == "2"
    assert told["worker"] == "master"
    assert told["artifacts"] == str(folder)
