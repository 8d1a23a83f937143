"""Messages between pytest, its zygote and its ranks: small JSON objects, each with the descriptors it hands over.

A message arrives whole or not at all, so that a reader never waits for the second half of what a killed process
was writing.
"""

from __future__ import annotations

import array
import json
import os
import secrets
import select
import socket
import struct
from collections.abc import Iterable, Sequence
from typing import Any

Message = dict[str, Any]

# Longest text that a message may carry, in characters; longer ones are cut in the middle.
_LONGEST_TEXT = 24_000
_LONGEST_MESSAGE = 192 * 1024
# Of what is kept of a rank's output, in bytes.
_LONGEST_OUTPUT = 256 * 1024
# Linux passes at most 253 descriptors with a message.
MOST_DESCRIPTORS = 253
# struct ucred: pid, uid, gid.
_CREDENTIALS = struct.Struct("iII")


class Channel:
    """One end of a connection between two processes."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * _LONGEST_MESSAGE)
        self._socket = connection

    @classmethod
    def pair(cls) -> tuple[Channel, Channel]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return cls(ours), cls(theirs)

    @classmethod
    def connect(cls, address: str) -> Channel | None:
        """A channel to the process with the `Listener` of this address; None if there is none on this host."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            connection.connect(f"\0{address}")
        except OSError:
            connection.close()
            return None
        return cls(connection)

    @classmethod
    def of_descriptor(cls, fd: int) -> Channel:
        """The channel whose end `fd` is; the descriptor is the channel's from now on."""
        return cls(socket.socket(fileno=fd))

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: Message, fds: Sequence[int] = ()) -> bool:
        """Sends `message`, and copies of `fds` with it; False if nobody is at the other end any more."""
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            self._socket.sendmsg([json.dumps(message).encode()], ancillary)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def receive(self) -> tuple[Message, list[int]] | None:
        """The next message and its descriptors; waits for it. None if the other end is gone."""
        room = socket.CMSG_SPACE(MOST_DESCRIPTORS * array.array("i").itemsize)
        try:
            data, ancillary, _, _ = self._socket.recvmsg(_LONGEST_MESSAGE, room, socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            return None
        if not data:
            return None
        fds = array.array("i")
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
        return json.loads(data), list(fds)

    def close(self) -> None:
        self._socket.close()


class Listener:
    """Where processes of this user that know its address get a channel. Its name is in no directory.

    Attributes:
        address: what `Channel.connect` takes; nobody can guess it.
    """

    def __init__(self) -> None:
        self.address = f"triton-dist-{secrets.token_hex(16)}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.bind(f"\0{self.address}")
        self._socket.listen(128)
        self._socket.setblocking(False)

    @classmethod
    def of_descriptor(cls, fd: int) -> Listener:
        """The listener whose socket `fd` is; the descriptor is the listener's from now on."""
        made = cls.__new__(cls)
        made._socket = socket.socket(fileno=fd)
        made._socket.setblocking(False)
        made.address = made._socket.getsockname()[1:].decode()
        return made

    def fileno(self) -> int:
        return self._socket.fileno()

    def accept(self) -> Channel | None:
        """A channel to the next process that has connected; None if there is none, or it is another user's."""
        try:
            connection, _ = self._socket.accept()
        except OSError:
            return None
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        if _CREDENTIALS.unpack(credentials)[1] != os.getuid():
            connection.close()
            return None
        connection.setblocking(True)
        return Channel(connection)

    def close(self) -> None:
        self._socket.close()


def readable(channels: Iterable[Channel], seconds: float) -> list[Channel]:
    """Those of `channels` that have a message, or are at their end; waits up to `seconds` for the first of them."""
    # Unlike select, poll takes descriptors above 1,023.
    poll = select.poll()
    by_fd = {channel.fileno(): channel for channel in channels}
    for fd in by_fd:
        poll.register(fd, select.POLLIN)
    return [by_fd[fd] for fd, _ in poll.poll(max(0.0, seconds) * 1e3)]


def shortened(text: str) -> str:
    """`text`, with its middle left out if it is too long for a message."""
    if len(text) <= _LONGEST_TEXT:
        return text
    half = _LONGEST_TEXT // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def memory_file(name: str, content: bytes = b"") -> int:
    """A descriptor of a file in memory that has no name in any directory and goes with its last descriptor."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC)
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]
    return fd


def read_all(fd: int) -> bytes:
    """The whole content of a memory file; the position that its writers share stays where it is."""
    return os.pread(fd, os.fstat(fd).st_size, 0)


def read_text(fd: int) -> str:
    """What processes wrote to a memory file, without its beginning if it is very long."""
    size = os.fstat(fd).st_size
    start = max(0, size - _LONGEST_OUTPUT)
    text = os.pread(fd, size - start, start).decode(errors="replace")
    return f"[... {start} bytes left out ...]\n{text}" if start else text


def close_all(fds: Iterable[int]) -> None:
    for fd in fds:
        os.close(fd)
