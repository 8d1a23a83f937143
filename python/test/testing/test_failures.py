"""The fixture dist_test where ranks fail: who, where, with what, and how soon."""

from __future__ import annotations

import re

import pytest

from triton_dist.testing.ranks.record import JobRecord, RankRecord
from triton_dist.testing.report import RanksFailed, judge

from .conftest import Suite

CONFTEST = """
import time
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.when == "call":
        print(f"ENDED {item.name} {time.monotonic()}")
    return report
"""

FAILURES = """
import ctypes, os, re, signal, sys, time
import pytest
import torch.distributed as dist

def run(dist_test, worker, world_size=2, **more):
    dist_test(worker, world_size=world_size, backend="gloo", **more)

def failing(text):
    print(f"FAILS {text} {time.monotonic()}", flush=True)

def deepest(rank):
    got = {"a": rank}
    failing("test_assert")
    assert got == {"a": 2}

def assert_in_rank(rank, world_size):
    print("said by", rank)
    if rank == 1:
        deepest(rank)
    dist.barrier()

def test_assert(dist_test):
    run(dist_test, assert_in_rank, 4)

def kills_itself(rank, world_size):
    if rank == 1:
        failing("test_killed")
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()

def test_killed(dist_test):
    run(dist_test, kills_itself)

def crashes(rank, world_size):
    if rank == 0:
        ctypes.string_at(0)
    dist.barrier()

def test_crashed(dist_test):
    run(dist_test, crashes)

def exits(rank, world_size):
    sys.exit(rank * 3)

def test_exit_status(dist_test):
    run(dist_test, exits)

def leaves(rank, world_size):
    os._exit(5 * rank)

def test_left_without_a_word(dist_test):
    run(dist_test, leaves)

def fails_by_choice(rank, world_size):
    pytest.fail("not good enough", pytrace=False)

def test_fail(dist_test):
    run(dist_test, fails_by_choice)

def skips(rank, world_size):
    pytest.skip("no such thing here")

def test_skip(dist_test):
    run(dist_test, skips)

def skips_alone(rank, world_size):
    if rank == 0:
        pytest.skip("only me")

def test_skip_of_one(dist_test):
    run(dist_test, skips_alone)

def expects(rank, world_size):
    if rank == 0:
        pytest.xfail("known")
    dist.barrier()

def test_xfail(dist_test):
    run(dist_test, expects)

def test_lambda(dist_test):
    run(dist_test, lambda rank, world_size: None)

def nothing(rank, world_size, argument=None):
    pass

def test_argument(dist_test):
    run(dist_test, nothing, args=(open(__file__),))

def test_too_many(dist_test):
    run(dist_test, nothing, 9)

def test_no_number(dist_test):
    run(dist_test, nothing, "2")

def test_backend(dist_test):
    dist_test(nothing, backend="carrier pigeon")

@pytest.mark.dist(wrold_size=4)
def test_marker(dist_test):
    run(dist_test, nothing)

def test_all_is_well_after_that(dist_test):
    run(dist_test, nothing)

def daemonizes(rank, world_size, file):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            with open(f"{file}{rank}", "w") as out:
                out.write(str(os.getpid()))
            time.sleep(1000)
        os._exit(0)
    os.wait()
    while not (os.path.exists(f"{file}{rank}") and os.path.getsize(f"{file}{rank}")):
        time.sleep(0.01)

def test_daemons(dist_test, tmp_path):
    run(dist_test, daemonizes, args=(tmp_path / "pid",))
    for rank in range(2):
        pid = int((tmp_path / f"pid{rank}").read_text())
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
"""


def section(output: str, test: str) -> str:
    """What pytest reports of one failed test."""
    found = re.search(rf"^_+ {test} _+$\n(.*?)(?=^_+ test_\S+ _+$|^=+ )", output, re.MULTILINE | re.DOTALL)
    assert found, f"no report of {test}"
    return found[1]


def test_a_test_fails_within_a_second_of_its_rank(suite: Suite) -> None:
    suite.write("conftest.py", CONFTEST)
    suite.write("test_failures.py", FAILURES)
    # Without capture: what ranks and pytest print comes together.
    output = suite.run("-s", "-k", "test_assert or test_killed").stdout.str()
    failed = dict(re.findall(r"FAILS (\w+) ([\d.]+)", output))
    ended = dict(re.findall(r"ENDED (\w+) ([\d.]+)", output))
    assert failed.keys() == ended.keys() == {"test_assert", "test_killed"}
    for test in failed:
        assert float(ended[test]) - float(failed[test]) < 1


def test_what_is_shown_of_failures(suite: Suite) -> None:
    suite.write("test_failures.py", FAILURES)
    result = suite.run("-rA", "--color=no")
    output = result.stdout.str()
    result.assert_outcomes(failed=13, passed=2, skipped=1, xfailed=1)

    told = section(output, "test_assert")
    assert told.startswith("rank 1 of 4: AssertionError: assert {'a': 1} == {'a': 2}\n")
    frames = re.findall(r"^(\S+?):\d+: in (\w+)$", told, re.MULTILINE)
    assert frames == [("test_failures.py", "assert_in_rank"), ("test_failures.py", "deepest")]
    assert re.search(r"^E +\{'a': 1\} != \{'a': 2\}$", told, re.MULTILINE)
    assert "(ranks 0, 2-3 ended while running)" in told
    assert "Captured stdout of rank 1" in told
    assert "said by 1" in told
    assert "said by 0" not in told

    assert section(output, "test_killed").startswith("rank 1 of 2: ended by SIGKILL")

    told = section(output, "test_crashed")
    assert told.startswith("rank 0 of 2: ended by SIGSEGV\n")
    assert re.search(r'test_failures.py", line \d+ in crashes', told)
    assert "triton_dist" not in told

    assert section(output, "test_exit_status").startswith("rank 1 of 2: SystemExit: 3\n")
    assert section(output, "test_left_without_a_word").startswith("rank 1 of 2: exited with status 5\n")
    assert "not good enough" in section(output, "test_fail")
    assert "rank 0 skipped (only me), but the others did not" in section(output, "test_skip_of_one")
    result.stdout.fnmatch_lines(["SKIPPED*no such thing here*", "XFAIL*test_xfail - known*"])

    told = section(output, "test_lambda")
    assert re.match(r"dist_test: worker function test_lambda\S+ \(test_failures.py:\d+\) cannot be sent", told)
    assert "args[0] <_io.TextIOWrapper" in section(output, "test_argument")
    told = section(output, "test_too_many")
    assert told == (
        "dist_test: 9 ranks need 9 NPUs, and the pool has 8 simulated (Ascend910B3): "
        "raise it with --npus=sim:COUNT or TRITON_DIST_SIM_NPUS\n"
    )
    assert "world_size is '2': it takes an integer of 1 or more" in section(output, "test_no_number")
    assert "carrier pigeon" in section(output, "test_backend")
    assert "marker dist does not know wrold_size" in section(output, "test_marker")


def failed(rank: int, at: float, line: str) -> RankRecord:
    return RankRecord(rank, pid=1, kind="failed", at=at, summary=line, text=f"test_it.py:1: in worker\nE   {line}")


def test_ranks_that_fail_alike_are_told_once() -> None:
    ranks = [failed(rank, 10 - rank / 1000, "ValueError: all") for rank in range(3)]
    with pytest.raises(RanksFailed) as caught:
        judge(JobRecord([*ranks, failed(3, 10.005, "RuntimeError: connection lost")]))
    lines = str(caught.value).splitlines()
    # The one that failed first is on top.
    assert lines[0] == "rank 2 of 4: ValueError: all"
    assert [line.strip("- ") for line in lines if line.startswith("---")] == [
        "ranks 0-2 of 4, alike",
        "rank 3 of 4, 7 ms later",
    ]
    assert lines.count("E   ValueError: all") == 1
    assert "E   RuntimeError: connection lost" in lines
