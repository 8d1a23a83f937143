"""How ranks meet: every rank gets the memory of all, and what goes wrong is told to every rank."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import threading
import time
from typing import Any

import light_ranks
import pytest

from triton_dist.runtime import rendezvous
from triton_dist.runtime.meeting import wire

MIB = 1 << 20


def meet(rank: int, world_size: int, endpoint: str, heap_bytes: int = MIB, timeout: float = 20.0) -> rendezvous.Meeting:
    return rendezvous.meet(
        rendezvous.Call(rendezvous.Endpoint(endpoint), rank, world_size, heap_bytes, heap_bytes + 4096, timeout)
    )


def open_descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def listens(endpoint: str) -> bool:
    """Whether anybody listens at an endpoint."""
    try:
        rendezvous.AbstractSocket(endpoint).dial(1.0).close()
    except ConnectionError:
        return False
    return True


# ------------------------------------------------------------------------------------------------ it works


def exchange(rank: int, world_size: int, endpoint: str, rounds: int) -> list[Any]:
    """Meets several times at one endpoint; each time all write to their segment, and read those of all."""
    before = open_descriptors()
    results = []
    for _ in range(rounds):
        meeting = meet(rank, world_size, endpoint, heap_bytes=1 << 33)
        os.pwrite(meeting.segments[rank], bytes([rank + 1]), 4096)
        until = time.monotonic() + 20
        seen: list[int] = []
        while time.monotonic() < until and seen != list(range(1, world_size + 1)):
            seen = [os.pread(segment, 1, 4096)[0] for segment in meeting.segments]
        sizes = {os.fstat(segment).st_size for segment in meeting.segments}
        used = max(os.fstat(segment).st_blocks * 512 for segment in meeting.segments)
        inheritable = [fd for fd in (*meeting.segments, *meeting.pidfds, meeting.status) if os.get_inheritable(fd)]
        results.append((seen, sizes, used <= MIB, meeting.pids, inheritable, len(set(meeting.pidfds))))
        meeting.close()
    return [results, open_descriptors() - before, os.getpid()]


@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_every_rank_gets_the_segments_of_all(world_size: int) -> None:
    outcomes = light_ranks.values(light_ranks.run(exchange, world_size, light_ranks.new_endpoint(), 3))
    pids = [pid for _, _, pid in outcomes]
    for results, leaked, _ in outcomes:
        assert leaked == set()
        # Twice more at the same endpoint, at once; 8 GiB a rank cost next to nothing.
        expected: tuple[Any, ...] = (list(range(1, world_size + 1)), {(1 << 33) + 4096}, True, pids, [], world_size)
        assert results == [expected] * 3


def test_jobs_at_different_endpoints_do_not_see_each_other() -> None:
    first, second = light_ranks.new_endpoint(), light_ranks.new_endpoint()
    calls = [(0, 2, first, 1), (0, 2, second, 1), (1, 2, second, 1), (1, 2, first, 1)]
    a0, b0, b1, a1 = light_ranks.values(light_ranks.run(exchange, calls))
    assert a0[0][0][3] == a1[0][0][3] == [a0[2], a1[2]]
    assert b0[0][0][3] == b1[0][0][3] == [b0[2], b1[2]]


def test_more_descriptors_than_fit_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_FDS_PER_MESSAGE", 4)
    endpoint, world_size = light_ranks.new_endpoint(), 6
    before = open_descriptors()
    meetings: dict[int, rendezvous.Meeting] = {}

    def join(rank: int) -> None:
        meetings[rank] = meet(rank, world_size, endpoint, heap_bytes=MIB + 0)

    threads = [threading.Thread(target=join, args=(rank,), daemon=True) for rank in range(world_size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    inodes = {rank: [os.fstat(fd).st_ino for fd in meeting.segments] for rank, meeting in meetings.items()}
    assert len(set(inodes[0])) == world_size
    assert all(inodes[rank] == inodes[0] for rank in range(world_size))
    for meeting in meetings.values():
        meeting.close()
    assert open_descriptors() == before


def disturb(endpoint: str, start: float) -> None:
    """Says all kinds of nonsense to rank 0."""
    transport = rendezvous.AbstractSocket(endpoint)
    kept = []
    until = time.monotonic() + start
    while time.monotonic() < until:
        for words in (b"GET / HTTP/1.1\r\n\r\n", b"", b"\0" * 36, b"TDISTJOB", b"x" * 60000, None):
            try:
                connection = transport.dial(1.0)
            except OSError:
                break
            kept.append(connection)
            if words is None:
                continue  # says nothing, and stays
            # Rank 0 may have hung up on it already.
            with open("/dev/null", "rb") as null, contextlib.suppress(BrokenPipeError, ConnectionResetError):
                socket.send_fds(connection, [words], [null.fileno()] * 3)
        time.sleep(0.01)
    for connection in kept:
        connection.close()


def test_nonsense_on_the_socket_does_not_disturb_a_meeting() -> None:
    endpoint = light_ranks.new_endpoint()
    noise = threading.Thread(target=disturb, args=(endpoint, 3.0), daemon=True)
    noise.start()
    outcomes = light_ranks.values(light_ranks.run(exchange, 3, endpoint, 5))
    noise.join(30)
    for results, leaked, _ in outcomes:
        assert leaked == set()
        assert [seen for seen, *_ in results] == [[1, 2, 3]] * 5


def hello_of_another_user(endpoint: str) -> str:
    """Comes as rank 1, but as the user `nobody`."""
    address = rendezvous.AbstractSocket(endpoint)
    os.setuid(65534)
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            connection = address.dial(1.0)
        except OSError:
            time.sleep(0.01)
            continue
        with connection, open("/dev/null", "rb") as null:
            hello = wire.Hello(wire.PROTOCOL_VERSION, 1, 2, MIB, os.getpid(), address.token, [null.fileno()] * 2)
            try:
                hello.send(connection)
                return repr(connection.recv(1000))
            except ConnectionError as error:
                return type(error).__name__
    return "nobody listened"


def fail_to_meet(rank: int, world_size: int, endpoint: str, heap_bytes: int = MIB, timeout: float = 1.0) -> str:
    """The text of the error that a meeting ends with, and what it left behind."""
    before = open_descriptors()
    try:
        meet(rank, world_size, endpoint, heap_bytes, timeout).close()
        text = "met"
    except rendezvous.RendezvousError as error:
        text = str(error)
    left = open_descriptors() - before
    return f"{text}, left {left}" if left else text


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_ranks_of_other_users_are_turned_away() -> None:
    endpoint = light_ranks.new_endpoint()
    answers: list[Any] = []
    host = threading.Thread(
        target=lambda: answers.extend(light_ranks.run(fail_to_meet, [(0, 2, endpoint, MIB, 3.0)])), daemon=True
    )
    host.start()
    (stranger,) = light_ranks.values(light_ranks.run(hello_of_another_user, [(endpoint,)]))
    host.join(30)
    assert stranger in ("b''", "ConnectionResetError", "BrokenPipeError")
    assert "rank 1 of 2 did not come" in answers[0].value


def pose_as_rank_0(endpoint: str, listening: Any) -> None:
    """Listens at an endpoint of root's as the user `nobody`."""
    transport = rendezvous.AbstractSocket(endpoint)
    os.setuid(65534)
    with transport.open() as listener:
        listener.settimeout(20)
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(20)
            connection.recv(100)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_another_user_in_place_of_rank_0_gets_nothing() -> None:
    endpoint = light_ranks.new_endpoint()
    calls = [(pose_as_rank_0, endpoint), (fail_to_meet, 1, 2, endpoint)]
    _, rank_1 = light_ranks.values(light_ranks.run(call_it, calls))
    assert "of user 65534 listens at endpoint" in rank_1


def call_it(function: Any, *arguments: Any) -> Any:
    if function is pose_as_rank_0:
        return pose_as_rank_0(arguments[0], None)
    return function(*arguments)


# ------------------------------------------------------------------------------------------ what goes wrong


def test_missing_ranks_are_named_on_every_rank() -> None:
    endpoint = light_ranks.new_endpoint()
    outcomes = light_ranks.run(fail_to_meet, [(rank, 5, endpoint, MIB, 2.0) for rank in (0, 2, 4)])
    for text in light_ranks.values(outcomes):
        assert f"ranks 1, 3 of 5 did not come to {endpoint} within 2 s" in text
        assert "TRITON_DIST_HEAP_TIMEOUT or option_attr.shm_init_timeout" in text
        assert "left" not in text
    assert max(outcome.seconds for outcome in outcomes) < 5
    assert not listens(endpoint)


def test_rank_0_that_does_not_come_is_named() -> None:
    endpoint = light_ranks.new_endpoint()
    with pytest.raises(rendezvous.RendezvousTimeoutError, match=r"rank 0 of 2 did not come .* \(seen from rank 1\)"):
        meet(1, 2, endpoint, timeout=0.3)


def test_a_time_out_is_a_timeout_error() -> None:
    with pytest.raises(TimeoutError, match="rank 1 of 2 did not come"):
        meet(0, 2, light_ranks.new_endpoint(), timeout=0.1)


def kind_of_failure(rank: int, world_size: int, endpoint: str) -> str:
    try:
        meet(rank, world_size, endpoint, timeout=1.0).close()
    except rendezvous.RendezvousError as error:
        return type(error).__name__
    return "met"


def test_a_time_out_is_one_on_every_rank() -> None:
    endpoint = light_ranks.new_endpoint()
    outcomes = light_ranks.run(kind_of_failure, [(rank, 3, endpoint) for rank in (0, 1)])
    assert light_ranks.values(outcomes) == ["RendezvousTimeoutError"] * 2


def test_different_world_sizes_are_told_to_all() -> None:
    endpoint = light_ranks.new_endpoint()
    outcomes = light_ranks.run(fail_to_meet, [(0, 3, endpoint, MIB, 20.0), (1, 4, endpoint), (2, 3, endpoint)])
    for text in light_ranks.values(outcomes):
        assert "for a job of 4 ranks, rank 0" in text
        assert "for one of 3" in text
        assert "n_ranks must be equal on all ranks" in text


def test_different_heaps_are_told_to_all() -> None:
    endpoint = light_ranks.new_endpoint()
    calls = [(0, 3, endpoint, MIB, 20.0), (1, 3, endpoint, MIB, 20.0), (2, 3, endpoint, 2 * MIB, 20.0)]
    for text in light_ranks.values(light_ranks.run(fail_to_meet, calls)):
        assert f"wants a symmetric heap of {2 * MIB} bytes, rank 0 one of {MIB} bytes" in text
        assert "rank 2 (process " in text
        assert "local_mem_size must be equal" in text


def test_two_ranks_with_one_number_are_told_to_all() -> None:
    endpoint = light_ranks.new_endpoint()
    calls = [(0, 3, endpoint, MIB, 20.0), (1, 3, endpoint, MIB, 20.0), (1, 3, endpoint, MIB, 20.0)]
    for text in light_ranks.values(light_ranks.run(fail_to_meet, calls)):
        assert f"two processes have rank 1 at {endpoint}: " in text


def test_a_second_job_on_the_same_endpoint_is_told_so() -> None:
    endpoint = light_ranks.new_endpoint()
    ready: list[Any] = []
    first = threading.Thread(
        target=lambda: ready.extend(light_ranks.run(fail_to_meet, [(0, 2, endpoint, MIB, 8.0)])), daemon=True
    )
    first.start()
    until = time.monotonic() + 20
    while not listens(endpoint) and time.monotonic() < until:
        time.sleep(0.01)
    with pytest.raises(rendezvous.RendezvousError, match=r"endpoint .* is in use: process \d+ gathers"):
        meet(0, 2, endpoint, timeout=20.0)
    # The first job is not disturbed: its other rank still comes, and they meet.
    meet(1, 2, endpoint).close()
    first.join(30)
    assert ready[0].value == "met"


def test_a_rank_of_another_version_is_told_so() -> None:
    endpoint = light_ranks.new_endpoint()
    texts: list[str] = []
    host = threading.Thread(target=lambda: texts.append(fail_to_meet(0, 2, endpoint, MIB, 20.0)), daemon=True)
    host.start()
    until = time.monotonic() + 20
    while not listens(endpoint) and time.monotonic() < until:
        time.sleep(0.01)
    transport = rendezvous.AbstractSocket(endpoint)
    with transport.dial(1.0) as connection, open("/dev/null", "rb") as null:
        wire.Hello(99, 1, 2, MIB, os.getpid(), transport.token, [null.fileno()] * 2).send(connection)
        connection.settimeout(10)
        answer = connection.recv(10000).decode()
    host.join(30)
    for text in (answer, texts[0]):
        assert "speaks version 99 of the rendezvous" in text


def meet_with_few_files(rank: int, world_size: int, endpoint: str, poor: int, files: int) -> str:
    """Rank `poor` may open so many files more, and no others."""
    if rank == poor:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (300, most))
        taken = []
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        for fd in taken[:files]:
            os.close(fd)
    return fail_to_meet(rank, world_size, endpoint, MIB, 20.0)


@pytest.mark.parametrize(("poor", "files"), [(0, 6), (0, 14), (2, 8)])
def test_a_limit_of_open_files_is_told_to_all(poor: int, files: int) -> None:
    endpoint = light_ranks.new_endpoint()
    outcomes = light_ranks.run(meet_with_few_files, 5, endpoint, poor, files)
    for text in light_ranks.values(outcomes):
        assert f"rank {poor} (process " in text
        assert "may not open the 11 files that a job of 5 ranks needs" in text
        assert "ulimit -n" in text
        assert "left" not in text
    assert max(outcome.seconds for outcome in outcomes) < 10


def die_while_waiting(rank: int, world_size: int, endpoint: str, victim: int) -> str:
    """Rank `victim` is killed when it has waited for a moment; the last rank never comes."""
    if rank == victim:
        threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
    return fail_to_meet(rank, world_size, endpoint, MIB, 20.0)


@pytest.mark.parametrize("victim", [0, 1])
def test_a_rank_that_ends_while_others_wait_is_named_at_once(victim: int) -> None:
    endpoint = light_ranks.new_endpoint()
    outcomes = light_ranks.run(die_while_waiting, [(rank, 4, endpoint, victim) for rank in range(3)])
    assert outcomes[victim].exit_code == -signal.SIGKILL
    for rank in {0, 1, 2} - {victim}:
        assert f"rank {victim} (process " in outcomes[rank].value
        assert f"ended before all 4 ranks had come to {endpoint}" in outcomes[rank].value
        assert outcomes[rank].seconds < 10
    assert not listens(endpoint)


def test_a_rank_that_stops_answering_is_named_on_every_rank() -> None:
    endpoint = light_ranks.new_endpoint()
    outcomes: list[light_ranks.Outcome] = []
    calls = [(rank, 4, endpoint, MIB, 5.0) for rank in (0, 2, 3)]
    ranks = threading.Thread(target=lambda: outcomes.extend(light_ranks.run(fail_to_meet, calls)), daemon=True)
    ranks.start()
    light_ranks.wait_for(lambda: listens(endpoint))
    transport = rendezvous.AbstractSocket(endpoint)
    with transport.dial(1.0) as connection, open("/dev/null", "rb") as null:
        hello = wire.Hello(wire.PROTOCOL_VERSION, 1, 4, MIB, os.getpid(), transport.token, [null.fileno()] * 2)
        hello.send(connection)
        ranks.join(30)
    for text in light_ranks.values(outcomes):
        assert f"rank 1 (process {os.getpid()}) came to {endpoint}, but did not take the others' memory" in text


def interrupt_while_waiting(rank: int, world_size: int, endpoint: str) -> Any:
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    before = open_descriptors()
    begin = time.monotonic()
    try:
        meet(rank, world_size, endpoint, timeout=25.0)
    except KeyboardInterrupt:
        return time.monotonic() - begin, open_descriptors() - before
    return None


@pytest.mark.parametrize("rank", [0, 1])
def test_ctrl_c_ends_the_wait(rank: int) -> None:
    endpoint = light_ranks.new_endpoint()
    (result,) = light_ranks.values(light_ranks.run(interrupt_while_waiting, [(rank, 2, endpoint)]))
    seconds, left = result
    assert seconds < 5
    assert left == set()


@pytest.mark.parametrize(("rank", "world_size"), [(2, 2), (-1, 2), (0, 0)])
def test_impossible_ranks_are_refused(rank: int, world_size: int) -> None:
    with pytest.raises(ValueError, match=r"world size|rank is"):
        meet(rank, world_size, light_ranks.new_endpoint())
