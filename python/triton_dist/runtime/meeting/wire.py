"""The messages of a rendezvous.

A rank says hello with its token and its two descriptors (segment, pidfd). Rank 0 answers with a failure, or with
`pids`, the count of `descriptors`, and messages that carry these. The rank answers `taken`, or a failure, and rank 0
says `go` once all have. Everything but the hello is JSON.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import struct
import time
from dataclasses import dataclass
from typing import Any

from triton_dist.runtime.meeting.call import Call, close_all
from triton_dist.runtime.meeting.errors import RendezvousError, RendezvousTimeoutError
from triton_dist.runtime.meeting.handshake import TOKEN_BYTES

PROTOCOL_VERSION = 2

# How often what waits looks up, and how long what must be tried again pauses, in seconds.
SLICE_SECONDS = 0.1
RETRY_SECONDS = 0.02

_MAGIC = b"TDISTJOB"
# magic, protocol version, rank, world size, heap bytes, process id, token
_HELLO = struct.Struct(f"=8sIiiqq{TOKEN_BYTES}s")
_MESSAGE_BYTES = 1 << 16
# What the kernel takes in one message (SCM_MAX_FD).
_FDS_MOST = 253
_FDS_PER_MESSAGE = 240


class TooManyFilesError(Exception):
    """A message had more descriptors than this process may have."""


@dataclass
class Hello:
    """What a rank says of itself when it comes.

    Attributes:
        version: of this protocol.
        rank: its number.
        world_size: ranks of its job.
        heap_bytes: symmetric heap that it wants, in bytes.
        pid: its process id, as it sees itself.
        token: shows that it was let in; 32 bytes.
        fds: its segment and its pidfd; none once they are closed.
    """

    version: int
    rank: int
    world_size: int
    heap_bytes: int
    pid: int
    token: bytes
    fds: list[int]

    @classmethod
    def of(cls, call: Call, token: bytes, fds: tuple[int, int]) -> Hello:
        """What this process says."""
        return cls(PROTOCOL_VERSION, call.rank, call.world_size, call.heap_bytes, os.getpid(), token, list(fds))

    def send(self, connection: socket.socket) -> None:
        """Says it."""
        values = (self.version, self.rank, self.world_size, self.heap_bytes, self.pid, self.token)
        socket.send_fds(connection, [_HELLO.pack(_MAGIC, *values)], self.fds)

    @classmethod
    def receive(cls, connection: socket.socket) -> Hello | None:
        """What the other side says; None if that is no hello.

        Raises:
            TooManyFilesError: this process may not open more files.
        """
        try:
            message, fds = _receive(connection)
        except OSError:
            return None
        if len(message) == _HELLO.size and len(fds) == 2:
            magic, version, rank, world_size, heap_bytes, pid, token = _HELLO.unpack(message)
            if magic == _MAGIC:
                return cls(version, rank, world_size, heap_bytes, pid, token, fds)
        close_all(fds)
        return None

    def close(self) -> None:
        """Closes its descriptors."""
        close_all(self.fds)
        self.fds = []


def send(connection: socket.socket, message: dict[str, Any]) -> None:
    """Sends a message. Raises OSError when the other side is gone."""
    connection.send(json.dumps(message).encode())


def send_failure(connection: socket.socket, failure: RendezvousError) -> None:
    """Tells the other side what ends the rendezvous; nothing happens if it is gone."""
    with contextlib.suppress(OSError):
        send(connection, {"failure": str(failure), "is_timeout": isinstance(failure, RendezvousTimeoutError)})


def send_descriptors(connection: socket.socket, fds: list[int], deadline: float) -> None:
    """Sends descriptors in as many messages as it takes. Raises OSError when the other side is gone."""
    for start in range(0, len(fds), _FDS_PER_MESSAGE):
        while True:
            try:
                socket.send_fds(connection, [b"fds"], fds[start : start + _FDS_PER_MESSAGE])
                break
            except OSError as error:
                # A user may have only so many descriptors in flight; those sent before must be taken first.
                if error.errno != errno.ETOOMANYREFS or time.monotonic() >= deadline:
                    raise
            time.sleep(RETRY_SECONDS)


def receive(connection: socket.socket, deadline: float) -> dict[str, Any]:
    """The next message of a connection.

    Raises:
        TimeoutError: there is none before the deadline (of `time.monotonic()`).
        ConnectionError: the other side is gone.
        RendezvousError: the other side says what ended the rendezvous.
    """
    text, fds = _await(connection, deadline)
    close_all(fds)
    message: dict[str, Any] = json.loads(text)
    if "failure" in message:
        raise (RendezvousTimeoutError if message["is_timeout"] else RendezvousError)(message["failure"])
    return message


def receive_descriptors(connection: socket.socket, count: int, deadline: float) -> list[int]:
    """The next `count` descriptors of a connection. Raises as `receive`, and TooManyFilesError."""
    fds: list[int] = []
    try:
        while len(fds) < count:
            fds.extend(_await(connection, deadline)[1])
    except BaseException:
        close_all(fds)
        raise
    return fds


def _await(connection: socket.socket, deadline: float) -> tuple[bytes, list[int]]:
    while (left := deadline - time.monotonic()) > 0:
        connection.settimeout(min(left, SLICE_SECONDS))
        try:
            message, fds = _receive(connection)
        except TimeoutError:
            continue
        if not message:
            raise ConnectionResetError("connection closed")
        return message, fds
    raise TimeoutError("nothing came")


def _receive(connection: socket.socket) -> tuple[bytes, list[int]]:
    """One message and its descriptors, which no program that is started inherits."""
    space = socket.CMSG_LEN(_FDS_MOST * struct.calcsize("i"))
    message, ancillary, flags, _ = connection.recvmsg(_MESSAGE_BYTES, space, socket.MSG_CMSG_CLOEXEC)
    fds: list[int] = []
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.extend(struct.unpack(f"={len(data) // 4}i", data[: len(data) // 4 * 4]))
    if flags & socket.MSG_CTRUNC:
        close_all(fds)
        raise TooManyFilesError("the system cut some off")
    return message, fds
