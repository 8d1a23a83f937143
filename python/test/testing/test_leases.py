"""The pool of NPUs that all processes of a host share."""

from __future__ import annotations

import itertools
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from triton_dist.testing.leases.directory import LeaseDirectory, default_path
from triton_dist.testing.leases.errors import LeaseError
from triton_dist.testing.leases.inventory import SimulatedNpus
from triton_dist.testing.leases.pool import Lease, NpuPool

from .conftest import wait_until

NPUS = 8
# For what must not happen: long enough that it would have happened.
A_WHILE = 0.2


class NotNowError(Exception):
    pass


def not_now() -> None:
    raise NotNowError


@pytest.fixture
def pool(tmp_path: Path) -> NpuPool:
    return pool_in(tmp_path / "leases")


def pool_in(directory: Path, npus: int = NPUS) -> NpuPool:
    return NpuPool(SimulatedNpus(npus, "Ascend910B3"), LeaseDirectory(directory))


class Request:
    """A request that waits in a thread; locks of different requests exclude each other as processes' do."""

    def __init__(self, pool: NpuPool, count: int) -> None:
        self.lease: Lease | None = None
        joined = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(pool, count, joined), daemon=True)
        self._thread.start()
        # So that the next request is behind this one.
        joined.wait(10)

    def _run(self, pool: NpuPool, count: int, joined: threading.Event) -> None:
        self.lease = pool.acquire(count, joined.set)
        joined.set()

    def finish(self) -> Lease:
        self._thread.join(10)
        assert self.lease is not None
        return self.lease


def test_leases_share_no_npu_no_port_and_no_session(pool: NpuPool) -> None:
    leases = [pool.acquire(2) for _ in range(4)]
    assert sorted(npu for lease in leases for npu in lease.npus) == list(range(NPUS))
    assert len({lease.port for lease in leases}) == 4
    assert len({lease.session for lease in leases}) == 4
    assert all(len(lease.session) >= 32 for lease in leases)
    for lease in leases:
        lease.release()


def test_all_npus_or_none(pool: NpuPool) -> None:
    first = pool.acquire(5)
    with pytest.raises(NotNowError):
        pool.acquire(4, not_now)
    # What was free is free still.
    second = pool.acquire(3, not_now)
    first.release()
    second.release()
    pool.acquire(NPUS, not_now).release()


def test_a_big_request_is_not_overtaken(pool: NpuPool) -> None:
    held = pool.acquire(1)
    big, small = Request(pool, NPUS), Request(pool, 1)
    time.sleep(A_WHILE)
    assert big.lease is None
    assert small.lease is None, "one NPU went to the second in the line, though seven were free for the first"
    held.release()
    lease = big.finish()
    time.sleep(A_WHILE)
    assert small.lease is None
    lease.release()
    small.finish().release()


def test_who_gives_up_waiting_leaves_the_line(pool: NpuPool) -> None:
    held = pool.acquire(NPUS)
    with pytest.raises(NotNowError):
        pool.acquire(NPUS, not_now)
    waiting = Request(pool, 1)
    held.release()
    waiting.finish().release()


HOLDER = """
import os, sys, time
from pathlib import Path
from triton_dist.testing.leases.directory import LeaseDirectory
from triton_dist.testing.leases.inventory import SimulatedNpus
from triton_dist.testing.leases.pool import NpuPool
pool = NpuPool(SimulatedNpus(8, "Ascend910B3"), LeaseDirectory(Path(sys.argv[1])))
"""


def start(code: str, directory: Path, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER + code, str(directory), *args],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_lease_ends_with_the_last_process_that_has_it(pool: NpuPool, tmp_path: Path) -> None:
    taker = start(
        """
lease = pool.acquire(8)
if os.fork() == 0:
    time.sleep(1000)
print(open("/proc/self/task/%d/children" % os.getpid()).read().split()[0], flush=True)
time.sleep(1000)
""",
        tmp_path / "leases",
    )
    rank = int(next_line(taker))
    taker.kill()
    taker.wait()
    with pytest.raises(NotNowError):
        pool.acquire(1, not_now)
    os.kill(rank, signal.SIGKILL)
    Request(pool, NPUS).finish().release()


def test_a_killed_waiter_holds_nobody_up(pool: NpuPool, tmp_path: Path) -> None:
    held = pool.acquire(NPUS)
    waiter = start("pool.acquire(8, lambda: print('waits', flush=True))", tmp_path / "leases")
    assert next_line(waiter) == "waits"
    behind = Request(pool, 1)
    waiter.kill()
    waiter.wait()
    held.release()
    behind.finish().release()


RANDOM_HOLDER = """
import random
random.seed(int(sys.argv[2]))
log = os.open(sys.argv[3], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def note(what, npus):
    os.write(log, f"{time.monotonic()} {os.getpid()} {what} {' '.join(map(str, npus))}\\n".encode())
while True:
    lease = pool.acquire(random.choice([1, 1, 2, 2, 4, 8]))
    note("has", lease.npus)
    time.sleep(random.random() * 0.02)
    note("gives", lease.npus)
    lease.release()
"""


def test_never_two_holders_whoever_is_killed(tmp_path: Path) -> None:
    generator = random.Random(20)
    log = tmp_path / "log"
    killed: dict[int, float] = {}
    running: list[subprocess.Popen[str]] = []
    end = time.monotonic() + 4
    seed = 0
    while time.monotonic() < end:
        while len(running) < 5:
            running.append(start(RANDOM_HOLDER, tmp_path / "leases", str(seed), str(log)))
            seed += 1
        time.sleep(0.3)
        victim = running.pop(generator.randrange(len(running)))
        killed[victim.pid] = time.monotonic()
        victim.kill()
        victim.wait()
    for process in running:
        killed[process.pid] = time.monotonic()
        process.kill()
        process.wait()

    times: dict[int, list[tuple[float, float]]] = defaultdict(list)
    begun: dict[tuple[int, int], float] = {}
    for line in log.read_text().splitlines():
        at, pid, what, *npus = line.split()
        for npu in map(int, npus):
            if what == "has":
                begun[int(pid), npu] = float(at)
            else:
                times[npu].append((begun.pop((int(pid), npu)), float(at)))
    for (holder, npu), since in begun.items():
        # It was killed before it could say that it gave the NPU back.
        times[npu].append((since, max(since, killed[holder])))
    assert sum(map(len, times.values())) > 50
    for npu, spans in times.items():
        spans.sort()
        for (_, ended), (began, _) in itertools.pairwise(spans):
            assert ended <= began, f"NPU {npu} had two holders"
    pool_in(tmp_path / "leases").acquire(NPUS, not_now).release()


def test_more_than_there_are_is_an_error_that_says_what_to_do(pool: NpuPool) -> None:
    with pytest.raises(LeaseError, match=r"9 ranks need 9 NPUs, and the pool has 8 simulated .*--npus=sim:COUNT"):
        pool.acquire(9)


def test_runs_with_different_counts_share_the_first_npus(tmp_path: Path) -> None:
    small = pool_in(tmp_path, npus=2).acquire(2)
    large = pool_in(tmp_path, npus=4).acquire(2)
    assert not set(small.npus) & set(large.npus)
    small.release()
    large.release()


@pytest.mark.parametrize(
    "prepare",
    [
        pytest.param(lambda path: path.write_text(""), id="a file"),
        pytest.param(lambda path: path.symlink_to("/proc/1"), id="not writable"),
    ],
)
def test_an_unusable_directory_is_one_clear_line(tmp_path: Path, prepare: Callable[[Path], object]) -> None:
    prepare(tmp_path / "leases")
    with pytest.raises(LeaseError) as caught:
        pool_in(tmp_path / "leases").acquire(1)
    message = str(caught.value)
    assert "\n" not in message
    assert str(tmp_path / "leases") in message
    assert "TRITON_DIST_LEASE_DIR" in message


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start processes of another user")
def test_users_share_the_directory_that_one_of_them_made(pool: NpuPool, tmp_path: Path) -> None:
    directory = tmp_path / "leases"
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == "root" and folder.parent != folder and folder.stat().st_mode & 0o700 == 0o700:
            # pytest keeps its folders to itself.
            folder.chmod(folder.stat().st_mode | 0o011)
    ours = pool.acquire(3)
    assert directory.stat().st_mode & 0o7777 == 0o1777
    # Only then: the other user may not be able to read this one's Python.
    become_nobody = "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
    theirs = start(become_nobody + "print(*pool.acquire(5).npus, flush=True); input()", directory)
    assert next_line(theirs) == " ".join(str(npu) for npu in range(NPUS) if npu not in ours.npus)
    with pytest.raises(NotNowError):
        pool.acquire(1, not_now)
    theirs.communicate("\n")
    ours.release()
    pool.acquire(NPUS, not_now).release()


def test_the_default_directory_is_the_same_for_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    before = default_path()
    for name in ("HOME", "TMPDIR", "USER", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, "/somewhere/else")
    assert default_path() == before
    assert before.is_absolute()


def listening(port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(1)
    return listener


def test_a_port_that_another_program_has_is_not_given(pool: NpuPool) -> None:
    given = pool.acquire(1)
    given.release()
    listener = listening(given.port)
    try:
        for _ in range(40):
            lease = pool.acquire(1)
            assert lease.port != given.port
            lease.release()
    finally:
        listener.close()


def test_pools_that_do_not_know_each_other_give_different_ports(pool: NpuPool, tmp_path: Path) -> None:
    # Nobody listens: the claim alone keeps the port, before the ranks have started.
    given = pool_in(tmp_path / "other").acquire(1)
    for _ in range(40):
        lease = pool.acquire(1)
        assert lease.port != given.port
        lease.release()
    given.release()


def test_no_free_port_is_an_error(pool: NpuPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triton_dist.testing.leases.endpoint._PORTS_PER_NPU", 1)
    port = pool.acquire(1)
    port.release()
    listener = listening(port.port)
    try:
        with pytest.raises(LeaseError, match=rf"{port.port}"):
            pool.acquire(1)
    finally:
        listener.close()
    # The error did not keep the NPU.
    wait_until(lambda: pool.acquire(NPUS, not_now), "all NPUs", 1)
