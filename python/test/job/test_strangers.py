"""Whoever else connects to the port of rank 0: strangers, slow ones, liars. The ranks meet all the same."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import light_ranks
import ports
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from triton_dist.env.addresses import parse_address
from triton_dist.runtime import rendezvous
from triton_dist.runtime.meeting import handshake, wire
from triton_dist.runtime.meeting.handshake import NotOfThisProtocolError, Origin, Request, Verdict

MIB = 1 << 20


@pytest.fixture
def port() -> Iterator[int]:
    with ports.kept() as kept:
        yield kept


def meet(rank: int, world_size: int, port: int, timeout: float = 25.0) -> str:
    endpoint = rendezvous.Endpoint(f"tcp://127.0.0.1:{port}", parse_address(f"127.0.0.1:{port}"))
    before = set(os.listdir("/proc/self/fd"))
    try:
        rendezvous.meet(rendezvous.Call(endpoint, rank, world_size, MIB, MIB + 4096, timeout)).close()
        text = "met"
    except rendezvous.RendezvousError as error:
        text = str(error)
    left = set(os.listdir("/proc/self/fd")) - before
    return f"{text}, left {left}" if left else text


def dial(port: int) -> socket.socket:
    """A connection to rank 0, as soon as it listens."""
    until = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), 5.0)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


@contextlib.contextmanager
def rank_0_waits(port: int) -> Iterator[list[str]]:
    """A rank 0 in a process of its own. At the end rank 1 comes, and both must meet."""
    results: list[str] = []
    thread = threading.Thread(
        target=lambda: results.extend(light_ranks.values(light_ranks.run(meet, [(0, 2, port)]))), daemon=True
    )
    thread.start()
    dial(port).close()
    yield results
    assert meet(1, 2, port) == "met"
    thread.join(40)
    assert results == ["met"]


def test_random_bytes_at_the_port_are_survived(port: int) -> None:
    head = b"TDISTRV" + bytes([handshake.VERSION])
    size = handshake.REQUEST_BYTES

    @settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        st.one_of(
            st.binary(max_size=2 * size),
            st.binary(min_size=size - len(head), max_size=size).map(lambda tail: head + tail),
            st.binary(max_size=size).map(lambda tail: head[:4] + tail),
        ),
        st.sampled_from(["close", "reset", "listen", "keep"]),
    )
    def throw(said: bytes, then: str) -> None:
        connection = dial(port)
        with contextlib.suppress(OSError):
            connection.sendall(said)
        if then == "listen":
            connection.settimeout(0.05)
            with contextlib.suppress(OSError):
                assert len(connection.recv(1 << 16)) <= handshake.GREETING_BYTES + handshake.ANSWER_BYTES
        if then == "keep":
            kept.append(connection)
            return
        if then == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    kept: list[socket.socket] = []
    with rank_0_waits(port):
        throw()
    for connection in kept:
        connection.close()


def test_half_open_and_slow_connections_do_not_keep_ranks_from_meeting(port: int) -> None:
    with contextlib.ExitStack() as stack, rank_0_waits(port):
        for _ in range(400):  # more than rank 0 hears at a time
            stack.enter_context(dial(port))
        done = threading.Event()

        def drip(connection: socket.socket) -> None:
            with contextlib.suppress(OSError):
                for byte in b"TDISTRV\1" + bytes(1000):
                    connection.sendall(bytes([byte]))
                    if done.wait(0.05):
                        return

        slow = [threading.Thread(target=drip, args=(stack.enter_context(dial(port)),), daemon=True) for _ in range(5)]
        for thread in slow:
            thread.start()
        stack.callback(done.set)


def listen_as(answer: Callable[[socket.socket], None], port: int, done: threading.Event) -> threading.Thread:
    """Somebody who listens in place of rank 0."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(50)
    listener.settimeout(0.1)

    def serve() -> None:
        with listener:
            while not done.is_set():
                with contextlib.suppress(OSError):
                    connection, _ = listener.accept()
                    with connection:
                        connection.settimeout(2.0)
                        answer(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


def test_who_does_not_know_the_secret_cannot_pose_as_rank_0(port: int) -> None:
    heard: list[bytes] = []

    def pose(connection: socket.socket) -> None:
        greeting = handshake.new_greeting()
        connection.sendall(greeting)
        request = connection.recv(handshake.REQUEST_BYTES, socket.MSG_WAITALL)
        heard.append(request)
        connection.sendall(handshake.make_answer(Verdict.WELCOME, b"n" * 32, greeting, request, b"a guess"))

    done = threading.Event()
    thread = listen_as(pose, port, done)
    text = meet(1, 2, port, timeout=1.0)
    done.set()
    thread.join(10)
    assert f"who listens at 127.0.0.1:{port} does not prove that it knows the secret of this job" in text
    assert heard


def test_what_was_heard_once_is_of_no_use(port: int) -> None:
    """Somebody between rank 1 and rank 0 replays the request of the one to the other."""
    requests: list[bytes] = []

    def overhear(connection: socket.socket) -> None:
        connection.sendall(handshake.new_greeting())
        requests.append(connection.recv(handshake.REQUEST_BYTES, socket.MSG_WAITALL))

    done = threading.Event()
    thread = listen_as(overhear, port, done)
    meet(1, 2, port, timeout=0.5)
    done.set()
    thread.join(10)
    with rank_0_waits(port), dial(port) as liar:
        liar.settimeout(10)
        assert len(liar.recv(handshake.GREETING_BYTES, socket.MSG_WAITALL)) == handshake.GREETING_BYTES
        liar.sendall(requests[0])
        answer = liar.recv(handshake.ANSWER_BYTES, socket.MSG_WAITALL)
        assert answer[0] == Verdict.WRONG_SECRET


def own_unix_sockets() -> list[str]:
    """The abstract names that this process listens at."""
    inodes = set()
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the listing itself has gone
            inodes.add(os.readlink(f"/proc/self/fd/{descriptor}")[len("socket:[") : -1])
    with open("/proc/net/unix") as table:
        rows = [line.split() for line in table]
    return [row[7] for row in rows if len(row) == 8 and row[6] in inodes and row[7].startswith("@triton-dist/")]


def test_a_process_of_the_same_user_without_the_token_is_not_let_in(port: int) -> None:
    results: list[str] = []
    thread = threading.Thread(target=lambda: results.append(meet(0, 2, port, 20.0)), daemon=True)
    thread.start()
    dial(port).close()
    names = own_unix_sockets()
    assert names
    for name in names:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as liar, open("/dev/null", "rb") as null:
            liar.settimeout(1.0)
            liar.connect("\0" + name[1:])
            hello = wire.Hello(wire.PROTOCOL_VERSION, 1, 2, MIB, os.getpid(), bytes(32), [null.fileno()] * 2)
            hello.send(liar)
            with contextlib.suppress(OSError):
                assert liar.recv(1000) == b""
    (outcome,) = light_ranks.run(meet, [(1, 2, port)])
    assert outcome.value == "met"
    thread.join(30)
    assert results[0].startswith("met")


def request_of(secret: bytes) -> tuple[bytes, bytes]:
    greeting = handshake.new_greeting()
    return greeting, handshake.make_request(Request(bytes(16), 1, 2, Origin.own()), greeting, secret)


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=40), st.integers(min_value=0), st.integers(1, 255))
def test_a_message_that_was_changed_anywhere_proves_nothing(secret: bytes, place: int, change: int) -> None:
    greeting, request = request_of(secret)
    answer = handshake.make_answer(Verdict.WELCOME, b"n" * 32, greeting, request, secret)
    assert handshake.is_proven(request, greeting, secret)
    assert handshake.read_answer(answer, greeting, request, secret) == (Verdict.WELCOME, b"n" * 32)
    assert secret not in request or len(secret) < 8

    def changed(message: bytes) -> bytes:
        at = place % len(message)
        return message[:at] + bytes([message[at] ^ change]) + message[at + 1 :]

    assert not handshake.is_proven(changed(request), greeting, secret)
    assert not handshake.is_proven(request, changed(greeting), secret)
    for said, to in ((changed(answer), request), (answer, changed(request))):
        with contextlib.suppress(NotOfThisProtocolError):
            assert handshake.read_answer(said, greeting, to, secret)[0] is Verdict.WRONG_SECRET


@settings(deadline=None)
@given(st.binary(max_size=100))
def test_whatever_is_no_greeting_is_refused(said: bytes) -> None:
    greeting = handshake.new_greeting()
    handshake.check_greeting(greeting)
    if greeting[: len(said[:8])] != said[:8]:
        with pytest.raises(NotOfThisProtocolError):
            handshake.check_greeting(said)


def test_a_rank_0_of_another_release_is_named(port: int) -> None:
    done = threading.Event()
    thread = listen_as(lambda connection: connection.sendall(b"TDISTRV\x63" + bytes(32)), port, done)
    text = meet(1, 2, port, timeout=1.0)
    done.set()
    thread.join(10)
    assert f"speaks version 99 of the rendezvous, this rank {handshake.VERSION}" in text


def test_refused_peers_are_logged(port: int, tmp_path: Any) -> None:
    environment = {"SHMEM_LOG_LEVEL": "WARN", "SHMEM_LOG_PATH": str(tmp_path)}
    thread = threading.Thread(
        target=lambda: light_ranks.run(initialise, [(0, 2, port)], environment=environment), daemon=True
    )
    thread.start()
    with dial(port) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        connection.settimeout(10)
        with contextlib.suppress(OSError):
            while connection.recv(1000):
                pass
    thread.join(30)
    (file,) = tmp_path.iterdir()
    assert "WARN " in file.read_text()
    assert "connection from 127.0.0.1 refused: it is no rank of this release, or none at all" in file.read_text()


def initialise(rank: int, world_size: int, port: int) -> str:
    import host_api

    from triton_dist.shims import shmem as ash

    attributes = ash.InitAttr()
    attributes.my_rank, attributes.n_ranks, attributes.local_mem_size = rank, world_size, MIB
    attributes.ip_port = f"tcp://127.0.0.1:{port}"
    attributes.option_attr.shm_init_timeout = 2
    return host_api.error(ash.aclshmem_init, attributes)
