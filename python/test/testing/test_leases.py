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


def test_others_use_what_a_big_request_cannot_use_yet_but_not_for_ever(pool: NpuPool) -> None:
    held = pool.acquire(1)
    big = Request(pool, NPUS)
    for _ in range(NPUS):
        pool.acquire(1).release()
    small = Request(pool, 1)
    time.sleep(A_WHILE)
    assert big.lease is None
    assert small.lease is None, "the first in the line was overtaken more often than there are NPUs"
    held.release()
    lease = big.finish()
    time.sleep(A_WHILE)
    assert small.lease is None
    lease.release()
    small.finish().release()


def test_who_is_stopped_in_the_line_is_not_waited_for(
    pool: NpuPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = pool.acquire(1)
    stopped = start("pool.acquire(8, lambda: print('waits', flush=True))", tmp_path / "leases")
    assert next_line(stopped) == "waits"
    stopped.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, stopped.pid, os.WSTOPPED | os.WNOWAIT)
    monkeypatch.setattr("triton_dist.testing.leases.line._ABSENT", 0.1)
    for _ in range(3 * NPUS):
        Request(pool, 1).finish().release()
    held.release()
    stopped.kill()
    stopped.communicate()


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


CROWD = """
import random
random.seed(int(sys.argv[2]))
log = os.open(sys.argv[3], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def note(what, lease, at):
    os.write(log, f"{at} {os.getpid()} {what} {lease.ticket} {' '.join(map(str, lease.npus))}\\n".encode())
for _ in range(int(sys.argv[4])):
    lease = pool.acquire(random.choice(list(map(int, sys.argv[5:]))))
    note("has", lease, lease.since)
    time.sleep(random.random() * 0.02)
    note("gives", lease, time.monotonic())
    lease.release()
    time.sleep(random.random() * 0.01)
"""


def test_a_crowd_of_which_some_are_killed(tmp_path: Path) -> None:
    """Never two holders, never a leak, never a request that waits for ever."""
    generator = random.Random(20)
    log = tmp_path / "log"
    ends: dict[int, float] = {}
    # These are left alone, and must come to their ends however many others come and go.
    steady = [
        start(CROWD, tmp_path / "leases", "1", str(log), "12", "8"),
        start(CROWD, tmp_path / "leases", "2", str(log), "30", "1", "2", "4", "8"),
    ]
    victims: list[subprocess.Popen[str]] = []
    seed = 3
    while any(process.poll() is None for process in steady):
        while len(victims) < 3:
            victims.append(start(CROWD, tmp_path / "leases", str(seed), str(log), "1000", "1", "1", "2", "2", "4"))
            seed += 1
        time.sleep(0.2)
        victim = victims.pop(generator.randrange(len(victims)))
        ends[victim.pid] = time.monotonic()
        victim.kill()
        victim.communicate()
    for process in steady:
        output, _ = process.communicate()
        assert process.returncode == 0, output
    for process in victims:
        ends[process.pid] = time.monotonic()
        process.kill()
        process.communicate()

    grants: list[tuple[float, int]] = []
    spans: dict[int, list[tuple[float, float]]] = defaultdict(list)
    begun: dict[int, tuple[float, int, list[int]]] = {}
    for line in log.read_text().splitlines():
        at, pid, what, ticket, *npus = line.split()
        if what == "has":
            begun[int(ticket)] = float(at), int(pid), list(map(int, npus))
            grants.append((float(at), int(ticket)))
        else:
            since, _, _ = begun.pop(int(ticket))
            for number in map(int, npus):
                spans[number].append((since, float(at)))
    for since, killed, of_killed in begun.values():
        for number in of_killed:
            # Its holder was killed before it could say that it gave the NPU back.
            spans[number].append((since, max(since, ends[killed])))
    assert sum(map(len, spans.values())) > 100
    for number, times in spans.items():
        times.sort()
        for (_, ended), (began, _) in itertools.pairwise(times):
            assert ended <= began, f"NPU {number} had two holders"
    order = [request for _, request in sorted(grants)]
    for place, request in enumerate(order):
        overtaken = sum(other > request for other in order[:place])
        assert overtaken <= NPUS, f"request {request} was passed by {overtaken} later ones"
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


def mounted(code: str, directory: Path, options: str, tmp_path: Path) -> str:
    """What `code` prints where `directory` is a file system of its own that is mounted with `options`."""
    script = tmp_path / "script"
    script.write_text(HOLDER + code)
    mount = 'mount -t tmpfs -o "$1" lease-test "$2" && exec "$3" "$4" "$2"'
    command = [
        "unshare",
        "--mount",
        "--map-root-user",
        "sh",
        "-c",
        mount,
        "sh",
        options,
        directory,
        sys.executable,
        script,
    ]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"no mounts of one's own here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


SAY = """
from triton_dist.testing.leases.errors import LeaseError
try:
    pool.acquire(8)
except LeaseError as error:
    print(error)
else:
    print("leased")
"""


def test_a_read_only_directory_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "leases").mkdir()
    said = mounted(SAY, tmp_path / "leases", "ro", tmp_path)
    assert said.startswith(f"the lease directory {tmp_path / 'leases'} cannot be used (Read-only file system: ")
    assert said.endswith(
        "make it writable for all users of this host, or set TRITON_DIST_LEASE_DIR to a directory that is"
    )


def test_a_full_disk_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "leases").mkdir()
    said = mounted(SAY, tmp_path / "leases", "size=8k", tmp_path)
    assert said.startswith(f"the lease directory {tmp_path / 'leases'} cannot be used (No space left on device")
    assert said.endswith("make room on its disk, or set TRITON_DIST_LEASE_DIR to a directory that is not full")


def test_a_disk_that_fills_up_later_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / "leases").mkdir()
    fill = """
pool.acquire(8).release()
try:
    with open(sys.argv[1] + "/rest", "wb", buffering=0) as rest:
        while True:
            rest.write(bytes(4096))
except OSError:
    pass
"""
    assert mounted(fill + SAY, tmp_path / "leases", "size=512k", tmp_path) == "leased"


BECOME_NOBODY = "os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(65534)\n"


def open_way_to(tmp_path: Path) -> None:
    """Lets other users pass through the folders, which pytest keeps to itself."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == "root" and folder.parent != folder and folder.stat().st_mode & 0o700 == 0o700:
            folder.chmod(folder.stat().st_mode | 0o011)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start processes of another user")
def test_users_share_the_directory_that_one_of_them_made(pool: NpuPool, tmp_path: Path) -> None:
    directory = tmp_path / "leases"
    open_way_to(tmp_path)
    ours = pool.acquire(3)
    assert directory.stat().st_mode & 0o7777 == 0o1777
    # Only then: the other user may not be able to read this one's Python.
    theirs = start(BECOME_NOBODY + "print(*pool.acquire(5).npus, flush=True); input()", directory, "65534")
    assert next_line(theirs) == " ".join(str(npu) for npu in range(NPUS) if npu not in ours.npus)
    with pytest.raises(NotNowError):
        pool.acquire(1, not_now)
    theirs.communicate("\n")
    ours.release()
    pool.acquire(NPUS, not_now).release()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start processes of another user")
def test_a_directory_for_a_group_is_for_its_users_alone(pool: NpuPool, tmp_path: Path) -> None:
    directory = tmp_path / "leases"
    open_way_to(tmp_path)
    directory.mkdir()
    os.chown(directory, 0, 4242)
    directory.chmod(0o2770)
    say = f"import pathlib\n{BECOME_NOBODY}{SAY}"
    assert start(say, directory, "4242").communicate()[0].strip() == "leased"
    ours = pool.acquire(1)
    stranger = start(say, directory, "65534").communicate()[0].strip()
    assert stranger.startswith(f"the lease directory {directory} cannot be used (Permission denied: ")
    assert "\n" not in stranger
    ours.release()


def test_containers_share_a_directory(pool: NpuPool, tmp_path: Path) -> None:
    ours = pool.acquire(3)
    # As in a container: its own process ids, host name, network, mounts and users.
    script = tmp_path / "script"
    script.write_text(HOLDER + "print(os.getpid(), *pool.acquire(5).npus, flush=True); input()")
    namespaces = ("--map-root-user", "--pid", "--fork", "--kill-child", "--uts", "--net", "--ipc", "--mount")
    theirs = subprocess.Popen(
        ["unshare", *namespaces, sys.executable, str(script), str(tmp_path / "leases")],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    if not (line := next_line(theirs)):
        pytest.skip(f"no namespaces of one's own here: {theirs.communicate()[1].strip()}")
    assert line == "1 3 4 5 6 7"
    with pytest.raises(NotNowError):
        pool.acquire(1, not_now)
    theirs.kill()
    theirs.communicate()
    Request(pool, 5).finish().release()
    ours.release()


def test_hosts_that_share_a_file_system_do_not_share_npus(
    pool: NpuPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = pool.acquire(NPUS)
    boot_id = tmp_path / "boot_id"
    boot_id.write_text("6a2b1c0d-0000-4000-8000-000000000000\n")
    monkeypatch.setattr("triton_dist.testing.leases.directory._BOOT_ID", boot_id)
    pool_in(tmp_path / "leases").acquire(NPUS, not_now).release()
    ours.release()


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


def test_no_free_port_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triton_dist.testing.leases.endpoint._PORTS_PER_NPU", 1)
    # One that no other run of this machine counts so far as to have.
    pool = NpuPool(SimulatedNpus({700}, "Ascend910B3"), LeaseDirectory(tmp_path / "leases"))
    port = pool.acquire(1)
    port.release()
    listener = listening(port.port)
    try:
        with pytest.raises(LeaseError, match=rf"{port.port}"):
            pool.acquire(1)
    finally:
        listener.close()
    # The error did not keep the NPU.
    pool.acquire(1, not_now).release()
