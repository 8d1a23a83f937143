"""How the ranks of a job find each other and hand round their memory.

The ranks of one host meet at an *endpoint*, any text that they all know. Rank 0 listens there, every rank brings its
segment (a memfd) and a pidfd of itself, and once all have come, rank 0 gives everything to everyone. Descriptors
travel over a UNIX socket in the abstract name space: there is no file and no port, so nothing is left after a crash
and the same endpoint can be used again at once.

What goes wrong is told to every rank in the same words: rank 0 stays for a moment to tell those who come late.

Anybody on the host can reach an abstract socket. Both sides therefore ask the kernel who the other one is, and
connections of other users, or without a proper hello, are dropped without disturbing the meeting.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import select
import selectors
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

PROTOCOL_VERSION = 1

_MAGIC = b"TDISTJOB"
# magic, protocol version, rank, world size, heap bytes, process id
_HELLO = struct.Struct("=8sIiiqq")
_CREDENTIALS = struct.Struct("=iII")  # struct ucred: pid, uid, gid
_MESSAGE_BYTES = 1 << 16
# The kernel takes at most 253 descriptors a message (SCM_MAX_FD).
_FDS_PER_MESSAGE = 240
_SLICE_SECONDS = 0.1
_RETRY_SECONDS = 0.02
# How long a failed rank 0 stays to tell ranks that come late what happened.
_GRACE_SECONDS = 1.0
# How long rank 0 retries where another process listens: that one may be ending.
_TAKEN_SECONDS = 1.5
_STATUS_BYTES_PER_RANK = 512
_ADVICE = (
    "every process of the job must initialise shmem with this endpoint. "
    "TRITON_DIST_HEAP_TIMEOUT or option_attr.shm_init_timeout sets the time"
)


class RendezvousError(RuntimeError):
    """The ranks of a job could not meet. The text names the ranks, what they said and what to do."""


class RendezvousTimeoutError(RendezvousError, TimeoutError):
    """A rank never came."""


@dataclass
class Meeting:
    """What a rank takes home from a rendezvous. It owns the descriptors.

    Attributes:
        segments: memfds by rank, each of the size that was asked for.
        pidfds: pidfds by rank, the own one included; readable once that process has ended.
        pids: process ids by rank, as each process sees itself.
        status: memfd of `status_bytes` bytes, zeroed, shared by all ranks: a page where each rank writes how it is.
    """

    segments: list[int]
    pidfds: list[int]
    pids: list[int]
    status: int
    status_bytes: int

    def close_segments(self) -> None:
        """Closes the memfds; what has been mapped stays mapped."""
        _close(self.segments)
        self.segments = []
        if self.status >= 0:
            os.close(self.status)
            self.status = -1

    def close(self) -> None:
        """Closes every descriptor."""
        self.close_segments()
        _close(self.pidfds)
        self.pidfds = []


@dataclass(frozen=True)
class Call:
    """What one rank asks for.

    Attributes:
        endpoint: where the job meets.
        rank: number of this process, from 0.
        world_size: how many ranks the job has.
        heap_bytes: symmetric heap that the user asked for, in bytes; must be equal on all ranks.
        segment_bytes: size of the memfd that each rank brings, in bytes.
        timeout: how long to wait for the others, in seconds.
    """

    endpoint: str
    rank: int
    world_size: int
    heap_bytes: int
    segment_bytes: int
    timeout: float


class Transport(Protocol):
    """A way for ranks to reach each other: connections that keep messages apart and carry descriptors."""

    def listen(self) -> socket.socket:
        """A listening socket at the endpoint. Raises OSError (EADDRINUSE) where somebody listens already."""

    def connect(self, timeout: float) -> socket.socket:
        """A connection to the rank that listens. Raises OSError where nobody does."""

    def peer(self, connection: socket.socket) -> tuple[int, int]:
        """Process id (0 where it cannot be known) and user id of the other side."""


class AbstractSocket:
    """Transport within one host: a UNIX socket whose abstract name comes from user and endpoint."""

    def __init__(self, endpoint: str) -> None:
        digest = hashlib.sha256(f"{os.geteuid()}\0{endpoint}".encode()).hexdigest()
        self._address = f"\0triton-dist/{digest[:40]}"

    def listen(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            listener.bind(self._address)
            listener.listen(4096)
        except BaseException:
            listener.close()
            raise
        return listener

    def connect(self, timeout: float) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            connection.settimeout(timeout)
            connection.connect(self._address)
        except BaseException:
            connection.close()
            raise
        return connection

    def peer(self, connection: socket.socket) -> tuple[int, int]:
        packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, uid, _ = _CREDENTIALS.unpack(packed)
        return pid, uid


def meet(call: Call, transport: Transport | None = None) -> Meeting:
    """Waits until all ranks of the job have come, and gives each the segments of all.

    Raises:
        ValueError: rank, world size or a size is not possible.
        RendezvousTimeoutError: ranks did not come within `call.timeout` seconds.
        RendezvousError: the ranks do not agree, two have one number, the endpoint is in use, or one ended meanwhile.
    """
    if call.world_size < 1:
        raise ValueError(f"world size is {call.world_size}: it must be at least 1")
    if not 0 <= call.rank < call.world_size:
        raise ValueError(
            f"rank is {call.rank}: in a job of {call.world_size} it must be from 0 to {call.world_size - 1}"
        )
    with contextlib.ExitStack() as own:
        segment = os.memfd_create("triton-dist-segment", os.MFD_CLOEXEC)
        own.callback(os.close, segment)
        os.ftruncate(segment, call.segment_bytes)
        pidfd = os.pidfd_open(os.getpid())
        own.callback(os.close, pidfd)
        transport = transport or AbstractSocket(call.endpoint)
        if call.rank == 0:
            return _Host(call, transport).receive((segment, pidfd))
        return _visit(call, transport, (segment, pidfd))


# ------------------------------------------------------------------------------------------------- rank 0


@dataclass
class _Guest:
    """A rank that has said a proper hello to rank 0."""

    connection: socket.socket
    pid: int
    fds: list[int]


@dataclass
class _Host:
    """Rank 0: gathers the others, then gives everything to everyone."""

    call: Call
    transport: Transport
    guests: dict[int, _Guest] = field(default_factory=dict)
    told: int = 0

    def receive(self, own: tuple[int, int]) -> Meeting:
        call = self.call
        deadline = time.monotonic() + call.timeout
        with contextlib.ExitStack() as stack:
            status_bytes = _STATUS_BYTES_PER_RANK * call.world_size
            if call.world_size > 1:
                stack.callback(self._dismiss)
                self._gather(deadline)
            status = os.memfd_create("triton-dist-status", os.MFD_CLOEXEC)
            try:
                os.ftruncate(status, status_bytes)
                segments, pidfds, pids = [own[0]], [own[1]], [os.getpid()]
                for rank in range(1, call.world_size):
                    guest = self.guests[rank]
                    segments.append(guest.fds[0])
                    pidfds.append(guest.fds[1])
                    pids.append(guest.pid)
                for rank, guest in sorted(self.guests.items()):
                    try:
                        _hand_over(guest.connection, pids, [status, *segments, *pidfds], deadline + _GRACE_SECONDS)
                    except OSError as error:
                        raise RendezvousError(
                            f"rank {rank} (process {guest.pid}) ended while the ranks at {call.endpoint} "
                            f"exchanged their memory ({error.strerror or error})"
                        ) from None
                kept: list[int] = []
                try:
                    for fd in (*segments, *pidfds):
                        kept.append(os.dup(fd))
                except OSError as error:
                    _close(kept)
                    raise _out_of_descriptors(call.world_size, error) from None
            except BaseException:
                os.close(status)
                raise
            return Meeting(kept[: len(segments)], kept[len(segments) :], pids, status, status_bytes)

    def _gather(self, deadline: float) -> None:
        """Waits for a hello of every other rank."""
        call = self.call
        with self._listen() as listener, selectors.DefaultSelector() as selector:
            listener.setblocking(False)
            selector.register(listener, selectors.EVENT_READ)
            waiting: set[socket.socket] = set()
            try:
                while len(self.guests) < call.world_size - 1:
                    left = deadline - time.monotonic()
                    if left <= 0:
                        raise RendezvousTimeoutError(self._missing())
                    for connection in self._ready(selector, listener, waiting, min(left, _SLICE_SECONDS)):
                        self._admit(connection, waiting)
            except RendezvousError as failure:
                self._tell(str(failure), listener, selector, waiting)
                raise
            finally:
                for connection in waiting:
                    connection.close()

    def _listen(self) -> socket.socket:
        give_up = time.monotonic() + min(_TAKEN_SECONDS, self.call.timeout)
        while True:
            try:
                return self.transport.listen()
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise RendezvousError(f"rank 0 cannot listen at {self.call.endpoint}: {error}") from None
                if time.monotonic() >= give_up:
                    raise RendezvousError(
                        f"endpoint {self.call.endpoint} is in use: {self._holder()} gathers the ranks of a job there. "
                        "Either two processes have rank 0, or two jobs start at one endpoint at the same time: "
                        "give each job its own ip_port or SHMEM_UID_SESSION_ID"
                    ) from None
            time.sleep(_RETRY_SECONDS)

    def _holder(self) -> str:
        try:
            with self.transport.connect(_SLICE_SECONDS) as connection:
                pid, uid = self.transport.peer(connection)
        except OSError:
            return "another process"
        return f"process {pid}" + ("" if uid == os.geteuid() else f" of user {uid}")

    def _ready(
        self, selector: selectors.BaseSelector, listener: socket.socket, waiting: set[socket.socket], seconds: float
    ) -> Iterator[socket.socket]:
        """Connections that have something to say. New ones are taken in, those of other users dropped."""
        for key, _ in selector.select(seconds):
            if key.fileobj is not listener:
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                selector.unregister(connection)
                yield connection
                if connection.fileno() >= 0:  # admitted: watched on, to notice when that rank ends
                    selector.register(connection, selectors.EVENT_READ)
                continue
            try:
                connection, _ = listener.accept()
            except OSError:
                continue  # the other side has gone already
            if self.transport.peer(connection)[1] != os.geteuid():
                connection.close()
                continue
            connection.setblocking(False)
            waiting.add(connection)
            selector.register(connection, selectors.EVENT_READ)

    def _admit(self, connection: socket.socket, waiting: set[socket.socket]) -> None:
        """Reads what a connection says; closes it unless that is a proper hello."""
        for rank, guest in self.guests.items():
            if guest.connection is connection:
                # A guest says nothing more: it has ended.
                del self.guests[rank]
                guest.connection.close()
                _close(guest.fds)
                raise RendezvousError(
                    f"rank {rank} (process {guest.pid}) ended before all {self.call.world_size} ranks "
                    f"had come to {self.call.endpoint}"
                )
        waiting.discard(connection)
        hello = _read_hello(connection)
        if hello is None:
            connection.close()
            return
        guest, version, rank, world_size, heap_bytes = hello
        try:
            self._compare(guest, version, rank, world_size, heap_bytes)
        except RendezvousError as failure:
            self._tell_one(connection, str(failure))
            connection.close()
            _close(guest.fds)
            raise
        self.guests[rank] = guest

    def _compare(self, guest: _Guest, version: int, rank: int, world_size: int, heap_bytes: int) -> None:
        call = self.call
        who = f"rank {rank} (process {guest.pid})"
        if version != PROTOCOL_VERSION:
            raise RendezvousError(
                f"{who} speaks version {version} of the rendezvous, rank 0 version {PROTOCOL_VERSION}: "
                "all ranks must run the same triton-dist"
            )
        if world_size != call.world_size:
            raise RendezvousError(
                f"{who} came to {call.endpoint} for a job of {world_size} ranks, rank 0 (process {os.getpid()}) for "
                f"one of {call.world_size}: n_ranks must be equal on all ranks, and two jobs that run at the same "
                "time need two endpoints"
            )
        if heap_bytes != call.heap_bytes:
            raise RendezvousError(
                f"{who} wants a symmetric heap of {heap_bytes} bytes, rank 0 one of {call.heap_bytes} bytes: "
                "local_mem_size must be equal on all ranks"
            )
        first = self.guests.get(rank)
        if rank == 0 or first is not None:
            pid = os.getpid() if first is None else first.pid
            raise RendezvousError(
                f"two processes have rank {rank} at {call.endpoint}: {pid} and {guest.pid}. "
                "Either my_rank is wrong in one of them, or two jobs use one endpoint at the same time"
            )

    def _missing(self) -> str:
        call = self.call
        missing = [rank for rank in range(1, call.world_size) if rank not in self.guests]
        ranks = f"rank {missing[0]}" if len(missing) == 1 else f"ranks {', '.join(map(str, missing))}"
        return f"{ranks} of {call.world_size} did not come to {call.endpoint} within {call.timeout:g} s: {_ADVICE}"

    def _tell(
        self, text: str, listener: socket.socket, selector: selectors.BaseSelector, waiting: set[socket.socket]
    ) -> None:
        """Tells every rank what failed, and for a moment also those that come late."""
        for guest in self.guests.values():
            self._tell_one(guest.connection, text)
        until = time.monotonic() + _GRACE_SECONDS
        while self.told < self.call.world_size - 1 and (left := until - time.monotonic()) > 0:
            for connection in self._ready(selector, listener, waiting, left):
                hello = _read_hello(connection)
                if hello is not None:
                    _close(hello[0].fds)
                    self._tell_one(connection, text)
                waiting.discard(connection)
                connection.close()

    def _tell_one(self, connection: socket.socket, text: str) -> None:
        with contextlib.suppress(OSError):  # it has ended: nobody left to tell
            connection.send(json.dumps({"failure": text}).encode())
        self.told += 1

    def _dismiss(self) -> None:
        for guest in self.guests.values():
            guest.connection.close()
            _close(guest.fds)


def _read_hello(connection: socket.socket) -> tuple[_Guest, int, int, int, int] | None:
    """The guest, its protocol version, rank, world size and heap bytes; None if it said anything else."""
    try:
        message, fds = _receive(connection)
    except OSError:
        return None
    if len(message) == _HELLO.size and len(fds) == 2:
        magic, version, rank, world_size, heap_bytes, pid = _HELLO.unpack(message)
        if magic == _MAGIC:
            return _Guest(connection, pid, fds), version, rank, world_size, heap_bytes
    _close(fds)
    return None


def _hand_over(connection: socket.socket, pids: list[int], fds: list[int], deadline: float) -> None:
    """Sends `fds` in as many messages as it takes. Raises OSError when the other side is gone."""
    connection.settimeout(max(_SLICE_SECONDS, deadline - time.monotonic()))
    connection.send(json.dumps({"pids": pids, "descriptors": len(fds)}).encode())
    for start in range(0, len(fds), _FDS_PER_MESSAGE):
        while True:
            try:
                socket.send_fds(connection, [b"fds"], fds[start : start + _FDS_PER_MESSAGE])
                break
            except OSError as error:
                # A user may have only so many descriptors in flight; those sent before must be taken first.
                if error.errno != errno.ETOOMANYREFS or time.monotonic() >= deadline:
                    raise
            time.sleep(_RETRY_SECONDS)


# ------------------------------------------------------------------------------------------- other ranks


def _visit(call: Call, transport: Transport, own: tuple[int, int]) -> Meeting:
    """Any rank but 0: brings its descriptors to rank 0 and waits for those of all."""
    deadline = time.monotonic() + call.timeout
    while True:
        connection = _connect(call, transport, deadline)
        with connection:
            host_pid, uid = transport.peer(connection)
            if uid != os.geteuid():
                raise RendezvousError(
                    f"process {host_pid} of user {uid} listens at endpoint {call.endpoint} in place of rank 0: "
                    "choose another ip_port or SHMEM_UID_SESSION_ID"
                )
            meeting = _stay(call, connection, host_pid, own)
        if meeting is not None:
            return meeting
        time.sleep(_RETRY_SECONDS)


def _connect(call: Call, transport: Transport, deadline: float) -> socket.socket:
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise RendezvousTimeoutError(
                f"rank 0 of {call.world_size} did not come to {call.endpoint} within {call.timeout:g} s "
                f"(seen from rank {call.rank}): {_ADVICE}"
            )
        try:
            return transport.connect(min(left, _SLICE_SECONDS))
        except (ConnectionError, TimeoutError, BlockingIOError):
            time.sleep(min(left, _RETRY_SECONDS))


def _stay(call: Call, connection: socket.socket, host_pid: int, own: tuple[int, int]) -> Meeting | None:
    """One visit at the process that listens; None when it closed the door before it took notice of this rank."""
    hello = _HELLO.pack(_MAGIC, PROTOCOL_VERSION, call.rank, call.world_size, call.heap_bytes, os.getpid())
    # Rank 0 may have begun to wait just now, and its clock decides; the rest is for a host that is very busy.
    deadline = time.monotonic() + call.timeout + 5 * _GRACE_SECONDS
    fds: list[int] = []
    try:
        try:
            socket.send_fds(connection, [hello], list(own))
            answer = json.loads(_next_message(call, connection, deadline, fds))
        except (ConnectionError, EOFError):
            if _has_ended(host_pid):
                raise RendezvousError(
                    f"rank 0 (process {host_pid}) ended before all {call.world_size} ranks had come to {call.endpoint}"
                ) from None
            return None
        if "failure" in answer:
            raise RendezvousError(answer["failure"])
        pids: list[int] = answer["pids"]
        while len(fds) < answer["descriptors"]:
            try:
                _next_message(call, connection, deadline, fds)
            except (ConnectionError, EOFError):
                raise RendezvousError(
                    f"rank 0 (process {host_pid}) ended while the ranks at {call.endpoint} exchanged their memory"
                ) from None
    except BaseException:
        _close(fds)
        raise
    status, segments, pidfds = fds[0], fds[1 : 1 + call.world_size], fds[1 + call.world_size :]
    return Meeting(segments, pidfds, pids, status, _STATUS_BYTES_PER_RANK * call.world_size)


def _next_message(call: Call, connection: socket.socket, deadline: float, fds: list[int]) -> bytes:
    """The next message; adds the descriptors that came with it to `fds`."""
    while (left := deadline - time.monotonic()) > 0:
        connection.settimeout(min(left, _SLICE_SECONDS))
        try:
            message, more = _receive(connection)
        except TimeoutError:
            continue
        except OverflowError as error:
            raise _out_of_descriptors(call.world_size, error) from None
        fds.extend(more)
        if not message:
            raise EOFError
        return message
    raise RendezvousTimeoutError(
        f"rank 0 did not bring the {call.world_size} ranks at {call.endpoint} together within {call.timeout:g} s "
        f"(seen from rank {call.rank}): {_ADVICE}"
    )


def _has_ended(pid: int) -> bool:
    """Whether a process has ended, or is just about to: its sockets close a little before it is gone."""
    if pid <= 0:
        return True  # of another PID name space: nothing more can be known
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return True
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        return bool(poll.poll(2 * _SLICE_SECONDS * 1000))
    finally:
        os.close(pidfd)


# ------------------------------------------------------------------------------------------- descriptors


def _receive(connection: socket.socket) -> tuple[bytes, list[int]]:
    """One message and its descriptors. Raises OverflowError when this process may not have that many."""
    space = socket.CMSG_LEN(_FDS_PER_MESSAGE * struct.calcsize("i"))
    message, ancillary, flags, _ = connection.recvmsg(_MESSAGE_BYTES, space, socket.MSG_CMSG_CLOEXEC)
    fds: list[int] = []
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.extend(struct.unpack(f"={len(data) // 4}i", data[: len(data) // 4 * 4]))
    if flags & socket.MSG_CTRUNC:
        _close(fds)
        raise OverflowError("descriptors were cut off")
    return message, fds


def _out_of_descriptors(world_size: int, error: Exception) -> RendezvousError:
    return RendezvousError(
        f"a job of {world_size} ranks needs {2 * world_size + 1} more open files than this process may have ({error}): "
        "raise the limit with ulimit -n"
    )


def _close(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)
