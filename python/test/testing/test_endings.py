"""How tests end that do not end by themselves: time-outs, kill -9 of anything, Ctrl-C; and that nothing is left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable

import pytest

from triton_dist.testing.leases.directory import LeaseDirectory
from triton_dist.testing.leases.line import in_line

from .conftest import PATIENCE, Suite, wait_until
from .test_failures import section

TIMEOUTS = """
import os, re, sys, time, types
import pytest

def fake_session(rank):
    # What a rank with the simulator loaded has.
    module = types.ModuleType("triton_dist.runtime.session")
    module.describe_waits = lambda: [{
        "kernel": "consumer_kernel", "program": [rank, 0, 0], "file": "/somewhere/test_ring.py", "line": 41,
        "primitive": "wait", "address": 140000, "pe_offset": 128, "compare": "==", "wanted": 1, "has": 0,
        "missing_pes": None, "index": 0, "count": 1, "queued": 0, "width": 8, "object": "signals", "object_offset": 128,
        "allocation": {"offset": 0, "bytes": 512}, "last_writer": None, "near": [], "seconds": 1.25,
    }]
    sys.modules["triton_dist.runtime.session"] = module

def in_a_helper():
    time.sleep(1000)

def waits(rank, world_size):
    fake_session(rank)
    print("output of", rank)
    if rank == 1:
        in_a_helper()
    if rank == 2:
        # Never gives Python's lock away: no thread of this process can answer.
        re.match("(a+)+$", 60 * "a" + "b")
    if rank == 3:
        return
    import torch.distributed as dist
    dist.barrier()

@pytest.mark.dist(timeout=3)
def test_marker(dist_test):
    dist_test(waits, world_size=4, backend="gloo")

def sleeps(rank, world_size):
    time.sleep(1000)

def test_option(dist_test):
    dist_test(sleeps, world_size=1, backend="gloo")

def test_next(dist_test):
    dist_test(lambda_free, backend="gloo")

def lambda_free(rank, world_size):
    pass
"""


def test_a_timeout_shows_stacks_and_waits(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.write("test_timeouts.py", TIMEOUTS)
    suite.write("eu-stack", "#!/bin/sh\necho >> asked\n")
    (suite.path / "eu-stack").chmod(0o755)
    monkeypatch.setenv("PATH", f"{suite.path}:/usr/bin:/bin")
    result = suite.run("--dist-timeout=4", "-o", "dist_timeout=1000", "--color=no")
    result.assert_outcomes(failed=2, passed=1)
    output = result.stdout.str()
    # A debugger takes many seconds for its stacks, which only --dist-artifacts keeps.
    assert not (suite.path / "asked").exists()

    told = section(output, "test_marker")
    assert told.startswith("time-out: ranks 0-2 of 4 were not done 3 s after the test got its NPUs\n")
    awaited = "signals[2]", "(+128 B of 512)", "== 1", "0"
    table = [line.split("  ") for line in told.splitlines() if "consumer_kernel" in line]
    assert [[cell.strip() for cell in row if cell] for row in table] == [
        [str(rank), f"({rank},0,0)", "consumer_kernel", "test_ring.py:41 wait", *awaited, "never", "1.25 s"]
        for rank in (0, 1, 3)
    ]
    stacks = re.split(r"^-+ rank (\d) of 4 -+$", told, flags=re.MULTILINE)[1:]
    of_rank = dict(zip(map(int, stacks[::2]), stacks[1::2], strict=True))
    assert "in waits\n    dist.barrier()" in of_rank[0]
    assert "in waits\n    in_a_helper()" in of_rank[1]
    assert "in in_a_helper\n    time.sleep(1000)" in of_rank[1]
    assert re.search(r'test_timeouts.py", line \d+ in waits', of_rank[2])
    assert "had returned" in of_rank[3]
    assert "triton_dist/testing" not in told
    assert "Captured stdout of rank 0" in told

    assert section(output, "test_option").startswith("time-out: rank 0 of 1 was not done 4 s after")


WAITING = """
import os, signal, subprocess, sys, time
import pytest

def waits(rank, world_size, folder):
    # A child as user code may have one, which must not be left either.
    subprocess.Popen(["sleep", "1000"])
    with open(f"{folder}/{rank}", "w") as file:
        file.write(str(os.getpid()))
    time.sleep(1000)

def test_waits(dist_test):
    with open(os.path.dirname(__file__) + "/worker", "w") as file:
        file.write(str(os.getpid()))
    dist_test(waits, world_size=4, backend="gloo", args=(os.path.dirname(__file__) + "/pids",))

def returns(rank, world_size):
    pass

def test_returns(dist_test):
    dist_test(returns, backend="gloo")
"""


class Run:
    """A run of pytest whose four ranks wait."""

    def __init__(self, suite: Suite, *args: str) -> None:
        self.suite = suite
        suite.write("test_waiting.py", WAITING)
        folder = suite.path / "pids"
        folder.mkdir()
        self.process = suite.start(*args)
        wait_until(lambda: len([file for file in folder.iterdir() if file.read_text()]) == 4, "four ranks")
        self.ranks = [int((folder / str(rank)).read_text()) for rank in range(4)]
        assert suite.free_npus() == 4

    @property
    def zygote(self) -> int:
        return int(parent_of(self.ranks[0]))

    @property
    def worker(self) -> int:
        """The process that runs the test: pytest, or its xdist worker."""
        return int((self.suite.path / "worker").read_text())

    def output(self) -> str:
        output, _ = self.process.communicate(timeout=PATIENCE)
        print(output)
        return output


def parent_of(pid: int) -> int:
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def test_kill_9_of_a_rank(suite: Suite) -> None:
    run = Run(suite)
    os.kill(run.ranks[2], signal.SIGKILL)
    output = run.output()
    assert section(output, "test_waits").startswith("rank 2 of 4: ended by SIGKILL")
    assert "1 failed, 1 passed" in output
    suite.check_nothing_left(0.5)


def test_kill_9_of_the_zygote(suite: Suite) -> None:
    run = Run(suite)
    os.kill(run.zygote, signal.SIGKILL)
    output = run.output()
    assert re.match(r"the process that starts ranks \(pid \d+\) ended by SIGKILL", section(output, "test_waits"))
    # The next test gets a new one.
    assert "1 failed, 1 passed" in output
    suite.check_nothing_left(0.5)


def test_kill_9_of_pytest(suite: Suite) -> None:
    run = Run(suite)
    run.process.kill()
    run.process.communicate()
    suite.check_nothing_left(5)


@pytest.fixture(params=["imports by itself", "forked"])
def worker(request: pytest.FixtureRequest, suite: Suite) -> Callable[[], Run]:
    """A run with one xdist worker of either kind."""
    forked = request.param == "forked"

    def started() -> Run:
        run = Run(suite, "-n", "1", *(suite.remember_ranks("test_waiting.py::test_waits") if forked else ()))
        assert run.worker != run.process.pid
        assert (parent_of(run.worker) != run.process.pid) == forked
        return run

    return started


def test_kill_9_of_an_xdist_worker(suite: Suite, worker: Callable[[], Run]) -> None:
    run = worker()
    os.kill(run.worker, signal.SIGKILL)
    output = run.output()
    assert "crashed while running 'test_waiting.py::test_waits'" in output
    # xdist starts another worker for the rest.
    assert "1 failed, 1 passed" in output
    suite.check_nothing_left(5)


def test_kill_9_of_what_forks_xdist_workers(suite: Suite) -> None:
    """They go on: their next test has ranks from a zygote of their own."""
    run = Run(suite, "-n", "1", *suite.remember_ranks("test_waiting.py::test_waits"))
    os.kill(parent_of(run.worker), signal.SIGKILL)
    output = run.output()
    assert "the process that starts ranks for all workers of this run ended" in section(output, "test_waits")
    assert "1 failed, 1 passed" in output
    suite.check_nothing_left(5)


def test_kill_9_of_the_controller_of_xdist(suite: Suite, worker: Callable[[], Run]) -> None:
    run = worker()
    run.process.kill()
    run.process.communicate()
    suite.check_nothing_left(10)


def test_ctrl_c(suite: Suite) -> None:
    run = Run(suite)
    os.killpg(run.process.pid, signal.SIGINT)
    assert "KeyboardInterrupt" in run.output()
    suite.check_nothing_left(0.5)


def test_ctrl_c_with_xdist(suite: Suite, worker: Callable[[], Run]) -> None:
    run = worker()
    os.killpg(run.process.pid, signal.SIGINT)
    assert "KeyboardInterrupt" in run.output()
    suite.check_nothing_left(10)


@pytest.mark.parametrize("pause", [0, 0.05], ids=["at_once", "while_it_ends"])
@pytest.mark.parametrize("args", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_ctrl_c_twice(suite: Suite, args: tuple[str, ...], pause: float) -> None:
    run = Run(suite, *args)
    os.killpg(run.process.pid, signal.SIGINT)
    time.sleep(pause)
    os.killpg(run.process.pid, signal.SIGINT)
    run.output()
    suite.check_nothing_left(10)


def test_the_time_for_a_lease_is_not_the_tests(suite: Suite) -> None:
    """A time-out counts from the lease: who has to wait longer than that for NPUs still gets all of its time."""
    first = Run(suite)
    suite.write(
        "test_second.py",
        "def worker(rank, world_size):\n    pass\n"
        "def test_second(dist_test):\n    dist_test(worker, world_size=8, backend='gloo')\n",
    )
    second = suite.start("test_second.py", "--dist-timeout=3")
    wait_until(lambda: in_line(LeaseDirectory(suite.leases)), "the second run to wait in line")
    with pytest.raises(subprocess.TimeoutExpired):
        second.wait(4)
    os.killpg(first.process.pid, signal.SIGINT)
    first.output()
    output, _ = second.communicate(timeout=PATIENCE)
    assert "1 passed" in output, output
    suite.check_nothing_left(0.5)


NO_MEMORY = """
import pytest
import shmem as ash

def initialises(rank, world_size, size):
    attributes = ash.InitAttr()
    attributes.my_rank, attributes.n_ranks = rank, world_size
    attributes.local_mem_size, attributes.ip_port = size, "tcp://127.0.0.1:8666"
    ash.aclshmem_init(attributes)
    ash.aclshmem_finalize()

@pytest.mark.dist
@pytest.mark.parametrize("size", [1 << 50, 1 << 20])
def test_heap(dist_test, size):
    dist_test(initialises, args=(size,))
"""


def test_no_memory_for_a_heap(suite: Suite) -> None:
    suite.write("test_memory.py", NO_MEMORY)
    result = suite.run("--color=no")
    result.assert_outcomes(failed=1, passed=1)
    told = section(result.stdout.str(), rf"test_heap\[{1 << 50}\]")
    assert re.match(r"rank \d of 2: ", told)
    assert "memory" in told


FAILURES = """
import pytest
import shmem as ash
import torch
import triton
import triton.language as tl
import triton_dist.language as dl

@triton.jit
def waits(signals):
    dl.wait(signals, 1, "sys", "acquire")

@triton.jit
def strays(signals):
    dl.notify(signals, 99)

def fails(rank, world_size, how):
    attributes = ash.InitAttr()
    attributes.my_rank, attributes.n_ranks = rank, world_size
    attributes.local_mem_size, attributes.ip_port = 1 << 20, "tcp://127.0.0.1:8666"
    ash.aclshmem_init(attributes)
    signals = ash.aclshmem_create_tensor([8], dtype=torch.int64, device_id=rank).zero_()
    if how == "kernel error" and rank == 0:
        strays[(1,)](signals)
    elif how == "exception" and rank == 0:
        raise ValueError("on purpose")
    else:
        waits[(1,)](signals)
    torch.npu.synchronize()

@pytest.mark.dist
@pytest.mark.parametrize("how", ["deadlock", "kernel error", "exception"])
def test_fails(dist_test, how):
    dist_test(fails, args=(how,))
"""


def test_failures_of_kernels_and_hosts(suite: Suite) -> None:
    suite.write("test_fails.py", FAILURES)
    result = suite.run("--color=no")  # looks at what is left, too
    result.assert_outcomes(failed=3)
    output = result.stdout.str()
    deadlock = section(output, r"test_fails\[deadlock\]")
    assert "triton_dist.DeadlockError: no rank can go on (2 ranks" in deadlock
    assert deadlock.count("last written by") == 1  # the table, once for all ranks
    assert "PE 99 does not exist" in section(output, r"test_fails\[kernel error\]")
    assert "ValueError: on purpose" in section(output, r"test_fails\[exception\]")
