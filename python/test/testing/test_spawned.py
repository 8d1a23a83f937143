"""Suites whose own conftest.py starts the ranks, with the ports hard-coded, as public ones do."""

from __future__ import annotations

import re

from .conftest import Suite
from .test_failures import section

CONFTEST = """
import os
import pytest
import torch.distributed as dist
import torch.multiprocessing as mp

def _rank(rank, worker_fn, world_size, backend, args):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = "29500"
    dist.init_process_group(backend, rank=rank, world_size=world_size)
    try:
        worker_fn(rank, world_size, *args)
    finally:
        dist.destroy_process_group()

@pytest.fixture
def dist_test():
    def run(worker_fn, world_size=2, backend="gloo", args=()):
        mp.spawn(_rank, args=(worker_fn, world_size, backend, args), nprocs=world_size, join=True)
    return run
"""

WORKERS = """
import os, subprocess, signal, time
import pytest
import torch
import torch.distributed as dist

def works(rank, world_size, folder):
    began = time.monotonic()
    total = torch.ones(2)
    dist.all_reduce(total)
    assert total[0] == world_size
    assert os.environ["TRITON_DIST_SIM_NPUS"] == str(world_size)
    time.sleep(1)
    line = [os.environ["TRITON_DIST_SESSION"], os.environ["TRITON_DIST_MASTER_PORT"], began, time.monotonic()]
    with open(f"{folder}/log", "a") as file:
        file.write(" ".join(map(str, line)) + "\\n")

@pytest.mark.dist
@pytest.mark.parametrize("number", range(3))
def test_works(dist_test, number):
    dist_test(works, args=(os.path.dirname(__file__),))
    assert "TRITON_DIST_SESSION" not in os.environ

def fails(rank, world_size):
    if rank == 1:
        raise ValueError("of rank 1")
    # Not in a collective: that would fail as well, and torch reports whichever process ends first.
    time.sleep(1000)

def test_fails(dist_test):
    dist_test(fails)

def hangs(rank, world_size, folder):
    if rank == 1:
        subprocess.Popen(["sleep", "1000"])
        open(f"{folder}/hangs", "w").close()
        time.sleep(1000)
    dist.barrier()

@pytest.mark.dist(timeout=15)
def test_hangs(dist_test):
    dist_test(hangs, args=(os.path.dirname(__file__),))
"""


def test_their_tests_run_side_by_side(suite: Suite) -> None:
    suite.write("conftest.py", CONFTEST)
    suite.write("test_workers.py", WORKERS)
    result = suite.run("-n", "3", "-k", "works", "--junit-xml=report.xml")
    result.assert_outcomes(passed=3)
    lines = [line.split() for line in (suite.path / "log").read_text().splitlines()]
    assert len(lines) == 6
    assert len({session for session, *_ in lines}) == 3
    spans = {(session, port): (float(began), float(ended)) for session, port, began, ended in lines}
    for (_, port), (began, ended) in spans.items():
        at_once = [other for (_, other), span in spans.items() if span[0] < ended and began < span[1]]
        assert at_once.count(port) == 1, "two tests had the same port at the same time"
    result.stdout.fnmatch_lines(["*3       6 *"])
    assert "npus" in (suite.path / "report.xml").read_text()


def test_their_failures_and_hangs_end(suite: Suite) -> None:
    suite.write("conftest.py", CONFTEST)
    suite.write("test_workers.py", WORKERS)
    result = suite.run("-k", "fails or hangs", "--color=no")
    result.assert_outcomes(failed=2)
    output = result.stdout.str()
    assert "Process 1 terminated with the following error" in section(output, "test_fails")
    assert "ValueError: of rank 1" in section(output, "test_fails")
    assert (suite.path / "hangs").exists(), "the ranks had no time to start"
    told = section(output, "test_hangs")
    assert told.startswith("time-out: ranks 0-1 of 2 were not done 15 s after the test got its NPUs\n")
    assert re.search(r'test_workers.py", line \d+, in hangs\n    time.sleep\(1000\)', told)
    assert re.search(r'test_workers.py", line \d+, in hangs\n    dist.barrier\(\)', told)
    assert "triton_dist/testing" not in told


CALLS = """
import os, time
import pytest
import torch.multiprocessing as mp

def waits(rank, folder):
    open(f"{folder}/{rank}", "w").write(f"{os.getpid()} {os.environ['TRITON_DIST_SIM_NPUS']}")
    time.sleep(1000)

@pytest.mark.dist
def test_does_not_join(tmp_path):
    mp.spawn(waits, args=(tmp_path,), nprocs=2, join=False)
    while sum(len(file.read_text().split()) == 2 for file in tmp_path.iterdir()) < 2:
        time.sleep(0.05)
    for rank in range(2):
        pid, npus = (tmp_path / str(rank)).read_text().split()
        assert npus == "2"

def ends(rank):
    assert "TRITON_DIST_SESSION" in os.environ

@pytest.mark.dist
def test_forks():
    mp.start_processes(ends, nprocs=2, start_method="fork")

@pytest.mark.dist
def test_too_many():
    mp.spawn(ends, nprocs=9)

@pytest.mark.dist
def test_cannot_be_pickled():
    mp.spawn(lambda rank: None, nprocs=2)

def not_leased(rank):
    assert "TRITON_DIST_SESSION" not in os.environ

def test_without_the_marker():
    mp.start_processes(not_leased, nprocs=2, start_method="fork")
"""


def test_calls_of_torch_multiprocessing(suite: Suite) -> None:
    suite.write("test_calls.py", CALLS)
    result = suite.run("--color=no", "-rP")
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines(["*LeaseError: 9 ranks need 9 NPUs, and the pool has 8 simulated*"])
    result.stdout.fnmatch_lines(["*Can't pickle local object*"])
