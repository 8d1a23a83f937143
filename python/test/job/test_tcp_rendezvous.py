"""How ranks meet over a TCP address, and what each of them is told where they cannot."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import light_ranks
import ports
import pytest

from triton_dist import env
from triton_dist.env.addresses import parse_address
from triton_dist.runtime import rendezvous
from triton_dist.runtime.meeting import handshake, secret

MIB = 1 << 20


@pytest.fixture
def port() -> Iterator[int]:
    with ports.kept() as kept:
        yield kept


def endpoint_at(port: int, host: str = "127.0.0.1", job: str = "") -> rendezvous.Endpoint:
    return rendezvous.Endpoint(f"tcp://{host}:{port}", parse_address(f"{host}:{port}"), job=job)


def meet(
    rank: int, world_size: int, endpoint: rendezvous.Endpoint, timeout: float = 20.0, heap_bytes: int = MIB
) -> rendezvous.Meeting:
    return rendezvous.meet(rendezvous.Call(endpoint, rank, world_size, heap_bytes, heap_bytes + 4096, timeout))


def open_descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def try_to_meet(
    rank: int, world_size: int, endpoint: rendezvous.Endpoint, timeout: float = 20.0, heap_bytes: int = MIB
) -> str:
    """The text of the error that a meeting ends with, and what it left behind."""
    before = open_descriptors()
    try:
        meet(rank, world_size, endpoint, timeout, heap_bytes).close()
        text = "met"
    except rendezvous.RendezvousError as error:
        text = str(error)
    left = open_descriptors() - before
    return f"{text}, left {left}" if left else text


def secrets_left(host_and_port: str) -> bool:
    """Whether a secret is kept for an address."""
    name = secret.JobSecret(host_and_port)._name
    return any(file.startswith(name) for file in os.listdir(secret._path()))


def wait_for_rank_0(port: int, host: str = "127.0.0.1") -> None:
    """Waits until somebody listens at the port."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection((host, port), 1.0):
            return
        time.sleep(0.01)
    raise AssertionError(f"nobody listens at {port}")


@contextlib.contextmanager
def rank_0_waits(
    endpoint: rendezvous.Endpoint, world_size: int = 2, timeout: float = 20.0, **environment: str
) -> Iterator[list[str]]:
    """A rank 0 in another process; at the end, the list has what `try_to_meet` returned."""
    results: list[str] = []

    def host() -> None:
        outcomes = light_ranks.run(try_to_meet, [(0, world_size, endpoint, timeout)], environment=environment)
        results.extend(light_ranks.values(outcomes))

    thread = threading.Thread(target=host, daemon=True)
    thread.start()
    assert endpoint.address is not None
    wait_for_rank_0(endpoint.address.port, endpoint.address.host)
    yield results
    thread.join(40)


# ------------------------------------------------------------------------------------------------ it works


def exchange(rank: int, world_size: int, endpoint: rendezvous.Endpoint, rounds: int) -> list[Any]:
    """Meets several times at one address, as quickly as it goes; each time all see what all have written."""
    before = open_descriptors()
    seen = []
    for number in range(rounds):
        meeting = meet(rank, world_size, endpoint)
        os.pwrite(meeting.segments[rank], bytes([number + rank + 1]), 0)
        until = time.monotonic() + 20
        expected = [number + each + 1 for each in range(world_size)]
        values: list[int] = []
        while time.monotonic() < until and values != expected:
            values = [os.pread(segment, 1, 0)[0] for segment in meeting.segments]
        seen.append(values == expected)
        meeting.close()
    return [seen, open_descriptors() - before]


@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_one_port_serves_many_jobs_one_right_after_the_other(world_size: int, port: int) -> None:
    outcomes = light_ranks.run(exchange, world_size, endpoint_at(port), 40)
    assert light_ranks.values(outcomes) == [[[True] * 40, set()]] * world_size
    assert not secrets_left(f"127.0.0.1:{port}")


def test_ipv6() -> None:
    with ports.kept(socket.AF_INET6) as port:
        # A scope says nothing more of this address, and does no harm.
        calls = [(0, 2, endpoint_at(port, "[::1%lo]"), 2), (1, 2, endpoint_at(port, "[::1]"), 2)]
        assert light_ranks.values(light_ranks.run(exchange, calls)) == [[[True] * 2, set()]] * 2


def test_ranks_may_write_one_address_in_different_ways(port: int) -> None:
    calls = [(0, 2, endpoint_at(port, "localhost"), 2), (1, 2, endpoint_at(port), 2)]
    assert light_ranks.values(light_ranks.run(exchange, calls)) == [[[True] * 2, set()]] * 2


def test_a_given_secret_is_the_one_that_counts(port: int) -> None:
    outcomes = light_ranks.run(exchange, 2, endpoint_at(port), 2, environment={"TRITON_DIST_JOB_SECRET": "open sesame"})
    assert light_ranks.values(outcomes) == [[[True] * 2, set()]] * 2


# -------------------------------------------------------------------------------- what every rank is told


def test_a_busy_port_is_told_to_every_rank(port: int) -> None:
    with socket.socket() as program:
        program.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        program.bind(("127.0.0.1", port))
        program.listen(50)  # takes connections and says nothing
        texts = light_ranks.values(light_ranks.run(try_to_meet, 3, endpoint_at(port)))
    for text in texts:
        assert text.startswith(f"endpoint tcp://127.0.0.1:{port} is in use: process {os.getpid()} (")
        assert "give each job its own ip_port or SHMEM_UID_SESSION_ID" in text
        assert "left" not in text


def answer_like_a_web_server(program: socket.socket, until: threading.Event) -> None:
    program.settimeout(0.1)
    while not until.is_set():
        with contextlib.suppress(OSError):
            connection, _ = program.accept()
            with connection:
                connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n" * 10)


def test_a_rank_that_meets_another_program_says_so(port: int) -> None:
    done = threading.Event()
    with socket.socket() as program:
        program.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        program.bind(("127.0.0.1", port))
        program.listen(50)
        server = threading.Thread(target=answer_like_a_web_server, args=(program, done), daemon=True)
        server.start()
        text = try_to_meet(1, 2, endpoint_at(port), timeout=1.0)
        done.set()
        server.join(10)
    assert f"rank 0 of 2 did not come to tcp://127.0.0.1:{port} within 1 s (seen from rank 1)" in text
    assert f"who listens at 127.0.0.1:{port} is another program, not rank 0 of a job" in text


def test_an_address_of_no_interface_is_told_to_every_rank() -> None:
    for text in light_ranks.values(light_ranks.run(try_to_meet, 3, endpoint_at(8666, "198.51.100.7"))):
        assert text.startswith("rank 0 cannot listen at tcp://198.51.100.7:8666: this host has no address 198.51.100.7")
        assert "(it has 127.0.0.1" in text
    late = try_to_meet(1, 2, endpoint_at(8666, "198.51.100.7"), timeout=0.5)
    assert "this host has no address 198.51.100.7" in late
    assert "simulated NPUs share the memory of one host" in late


def test_an_unknown_host_is_told_to_every_rank() -> None:
    for text in light_ranks.values(light_ranks.run(try_to_meet, 2, endpoint_at(8666, "no-such-host.invalid"))):
        assert "'no-such-host.invalid' is no host that is known here" in text


def test_missing_ranks_are_named_on_every_rank(port: int) -> None:
    calls = [(rank, 5, endpoint_at(port), 2.0) for rank in (0, 2, 4)]
    for text in light_ranks.values(light_ranks.run(try_to_meet, calls)):
        assert text.startswith(f"ranks 1, 3 of 5 did not come to tcp://127.0.0.1:{port} within 2 s: ")
        assert "left" not in text
    assert not secrets_left(f"127.0.0.1:{port}")


def test_rank_0_that_does_not_come_is_named(port: int) -> None:
    with pytest.raises(TimeoutError, match=r"rank 0 of 2 did not come to .* within 0.3 s \(seen from rank 1\)"):
        meet(1, 2, endpoint_at(port), timeout=0.3)
    assert not secrets_left(f"127.0.0.1:{port}")


def test_two_ranks_with_one_number_are_told_to_all(port: int) -> None:
    calls = [(rank, 3, endpoint_at(port)) for rank in (0, 1, 1)]
    for text in light_ranks.values(light_ranks.run(try_to_meet, calls)):
        assert f"two processes have rank 1 at tcp://127.0.0.1:{port}: " in text


def test_two_ranks_0_with_one_unique_id_are_told_to_all(port: int) -> None:
    calls = [(rank, 3, endpoint_at(port, job="a" * 32)) for rank in (0, 0, 1)]
    for text in light_ranks.values(light_ranks.run(try_to_meet, calls)):
        assert text.startswith(f"two processes have rank 0 at tcp://127.0.0.1:{port}: ")
        assert "left" not in text


def test_different_world_sizes_are_told_to_all(port: int) -> None:
    calls = [(0, 3, endpoint_at(port)), (1, 4, endpoint_at(port)), (2, 3, endpoint_at(port))]
    for text in light_ranks.values(light_ranks.run(try_to_meet, calls)):
        assert "for a job of 4 ranks, rank 0" in text
        assert "n_ranks must be equal on all ranks" in text


def stay(rank: int, world_size: int, endpoint: rendezvous.Endpoint, gate: str) -> str:
    """A job that runs until the file `gate` is there."""
    meeting = meet(rank, world_size, endpoint)
    with open(f"{gate}.{rank}", "w"):
        pass
    until = time.monotonic() + 30
    while not os.path.exists(gate) and time.monotonic() < until:
        time.sleep(0.02)
    meeting.close()
    return "met"


def test_a_second_job_beside_a_running_one_is_told_so_on_every_rank(port: int, tmp_path: Any) -> None:
    gate = str(tmp_path / "gate")
    first: list[Any] = []
    thread = threading.Thread(
        target=lambda: first.extend(light_ranks.run(stay, 2, endpoint_at(port), gate)), daemon=True
    )
    thread.start()
    until = time.monotonic() + 20
    while not all(os.path.exists(f"{gate}.{rank}") for rank in range(2)) and time.monotonic() < until:
        time.sleep(0.02)
    for text in light_ranks.values(light_ranks.run(try_to_meet, 3, endpoint_at(port))):
        assert text.startswith(f"endpoint tcp://127.0.0.1:{port} is in use: process ")
        assert "is rank 0 of a job there" in text
    straggler = try_to_meet(2, 3, endpoint_at(port), timeout=0.5)
    assert "is rank 0 of a job that has met there already" in straggler
    with open(gate, "w"):
        pass
    thread.join(30)
    assert light_ranks.values(first) == ["met", "met"]
    # It has gone: the port can be used again at once.
    assert light_ranks.values(light_ranks.run(try_to_meet, 2, endpoint_at(port))) == ["met", "met"]


def test_a_job_with_another_unique_id_does_not_disturb_one_that_gathers(port: int) -> None:
    with rank_0_waits(endpoint_at(port, job="a" * 32)) as first:
        second = light_ranks.values(light_ranks.run(try_to_meet, 2, endpoint_at(port, job="b" * 32)))
        assert try_to_meet(1, 2, endpoint_at(port, job="a" * 32)) == "met"
    assert first == ["met"]
    for text in second:
        assert f"endpoint tcp://127.0.0.1:{port} is in use: process " in text
    with rank_0_waits(endpoint_at(port, job="a" * 32), timeout=3.0) as first:
        alone = try_to_meet(1, 2, endpoint_at(port, job="b" * 32), timeout=0.5)
    assert "is rank 0 of another job, with another unique id" in alone
    assert "is of another job, with another unique id" in first[0]


def from_elsewhere(rank: int, world_size: int, endpoint: rendezvous.Endpoint, what: dict[str, Any]) -> str:
    """Rank 1 says that it runs somewhere else."""
    if rank == 1:
        own = replace(handshake.Origin.own(), **what)
        handshake.Origin.own = classmethod(lambda cls: own)  # type: ignore[assignment, method-assign]
    return try_to_meet(rank, world_size, endpoint)


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ({"host": bytes(16)}, "runs on another host than rank 0: simulated NPUs share the memory of one host"),
        ({"namespace": 1}, "runs in another network namespace"),
        ({"uid": 54321}, "runs as user 54321, rank 0 as another"),
    ],
)
def test_ranks_that_cannot_share_memory_are_told_so(what: dict[str, Any], told: str, port: int) -> None:
    for text in light_ranks.values(light_ranks.run(from_elsewhere, 3, endpoint_at(port), what)):
        assert text.startswith("rank 1 (process ")
        assert told in text


def die_while_waiting(rank: int, world_size: int, endpoint: rendezvous.Endpoint, victim: int) -> str:
    if rank == victim:
        threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
    return try_to_meet(rank, world_size, endpoint)


@pytest.mark.parametrize("victim", [0, 1])
def test_a_rank_that_ends_while_others_wait_is_named_at_once(victim: int, port: int) -> None:
    outcomes = light_ranks.run(die_while_waiting, [(rank, 4, endpoint_at(port), victim) for rank in range(3)])
    assert outcomes[victim].exit_code == -signal.SIGKILL
    for rank in {0, 1, 2} - {victim}:
        assert f"rank {victim} (process " in outcomes[rank].value
        assert f"ended before all 4 ranks had come to tcp://127.0.0.1:{port}" in outcomes[rank].value


def interrupt_while_waiting(rank: int, world_size: int, endpoint: rendezvous.Endpoint) -> set[str] | None:
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    before = open_descriptors()
    try:
        meet(rank, world_size, endpoint, timeout=25.0)
    except KeyboardInterrupt:
        return open_descriptors() - before
    return None


@pytest.mark.parametrize("rank", [0, 1])
def test_ctrl_c_ends_the_wait(rank: int, port: int) -> None:
    outcomes = light_ranks.run(interrupt_while_waiting, [(rank, 2, endpoint_at(port))], deadline=20.0)
    assert light_ranks.values(outcomes) == [set()]
    assert not secrets_left(f"127.0.0.1:{port}")


# ----------------------------------------------------------------------------------------------- secrets


def test_ranks_with_different_secrets_do_not_meet_and_are_told_so(port: int) -> None:
    with rank_0_waits(endpoint_at(port), timeout=6.0, TRITON_DIST_JOB_SECRET="one secret") as rank_0:
        outcomes = light_ranks.run(
            try_to_meet, [(1, 2, endpoint_at(port))], environment={"TRITON_DIST_JOB_SECRET": "another secret"}
        )
    (rank_1,) = light_ranks.values(outcomes)
    assert f"rank 0 at tcp://127.0.0.1:{port} does not take this rank's secret" in rank_1
    assert "TRITON_DIST_JOB_SECRET must be the same on all ranks" in rank_1
    assert "rank 1 of 2 did not come" in rank_0[0]
    assert "connections were refused: 127.0.0.1 does not prove that it knows the secret of this job" in rank_0[0]
    for text in (rank_1, rank_0[0]):
        assert "one secret" not in text
        assert "another secret" not in text


@pytest.fixture
def folder(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delenv(env.TRITON_DIST_JOB_SECRET.name, raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "triton-dist"


def test_a_secret_is_made_once_and_read_by_its_user_only(folder: Any) -> None:
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(secret.JobSecret("here").read())) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert (len(found), len(set(found)), len(found[0])) == (20, 1, 32)
    (file,) = folder.iterdir()
    assert [folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777] == [0o700, 0o600]
    assert secret.JobSecret("there").read() != found[0]
    secret.JobSecret("here").discard()
    assert len(list(folder.iterdir())) == 1
    assert secret.JobSecret("here").read() != found[0]


def test_secrets_of_crashed_jobs_do_not_pile_up(folder: Any) -> None:
    for number in range(5):
        secret.JobSecret(f"crashed {number}").read()
    for file in folder.iterdir():
        os.utime(file, (1, 1))
    secret.JobSecret("today").read()
    assert len(list(folder.iterdir())) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another user: root only")
def test_the_runtime_folder_of_another_user_is_not_used(tmp_path: Any, folder: Any) -> None:
    """As `su` and `sudo -E` leave it set."""
    os.chown(tmp_path, 65534, 65534)
    secret.JobSecret("here").read()
    secret.JobSecret("here").discard()
    assert not folder.exists()


def test_a_folder_that_cannot_be_made_is_an_error_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(env.TRITON_DIST_JOB_SECRET.name, raising=False)
    monkeypatch.setattr(secret, "_path", lambda: Path("/proc/triton-dist"))
    with pytest.raises(rendezvous.RendezvousError, match=r"/proc/triton-dist.*Set XDG_RUNTIME_DIR to a folder"):
        secret.JobSecret("here").read()


def test_a_secret_that_others_may_use_is_refused(folder: Any) -> None:
    mine = secret.JobSecret("here")
    mine.read()
    (file,) = folder.iterdir()
    file.chmod(0o640)
    with pytest.raises(rendezvous.RendezvousError, match=r"permissions 640: others than its owner may use it"):
        mine.read()
    file.unlink()
    file.symlink_to("/etc/hostname")
    with pytest.raises(rendezvous.RendezvousError, match="cannot read the secret of the job"):
        mine.read()
    file.unlink()
    file.write_bytes(b"short")
    file.chmod(0o600)
    with pytest.raises(rendezvous.RendezvousError, match="has 5 bytes, not 32"):
        mine.read()
    folder.chmod(0o755)
    with pytest.raises(rendezvous.RendezvousError, match=r"triton-dist has permissions 755"):
        mine.read()
    if os.geteuid() == 0:
        folder.chmod(0o700)
        os.chown(folder, 65534, 65534)
        with pytest.raises(rendezvous.RendezvousError, match="belongs to user 65534, not to user 0"):
            mine.read()


def test_a_secret_that_cannot_be_kept_is_told_to_every_rank(folder: Any, port: int) -> None:
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    environment = {"XDG_RUNTIME_DIR": str(folder.parent)}
    for text in light_ranks.values(light_ranks.run(try_to_meet, 2, endpoint_at(port), environment=environment)):
        assert "the secret of the job cannot be kept" in text
