"""How ranks reach each other: connections over a UNIX socket of the host, since only these carry descriptors."""

from __future__ import annotations

import hashlib
import hmac
import os
import socket
import struct
from pathlib import Path
from typing import Protocol

from triton_dist.runtime.meeting import namespaces
from triton_dist.runtime.meeting.handshake import TOKEN_BYTES

_CREDENTIALS = struct.Struct("=iII")  # struct ucred: pid, uid, gid
_BACKLOG = 4096
# One attempt to connect within the host.
_DIAL_SECONDS = 0.1


class Claim:
    """What keeps a port for a job that has met, from its meeting to its end, or that of the process."""

    def __init__(self, *sockets: socket.socket) -> None:
        """Takes over the sockets."""
        self._descriptors = [each.detach() for each in sockets]

    def close(self) -> None:
        """Lets others have the port."""
        while self._descriptors:
            os.close(self._descriptors.pop())


class Reception(Protocol):
    """What sends guests on to the UNIX socket of rank 0."""

    def fileno(self) -> int:
        """Readable when `attend` has something to do."""

    def attend(self) -> None:
        """Does what can be done without waiting; to be called now and then also where nothing is readable.

        Raises:
            RendezvousError: the ranks cannot meet.
        """

    def admits(self, token: bytes, rank: int) -> bool:
        """Whether this token was given to this rank and has not been shown before."""

    def describe_refused(self) -> str:
        """Whom it has turned away, in words; "" if nobody."""

    def close(self) -> None:
        """Closes every connection and the port."""

    def withdraw(self) -> Claim:
        """As `close`, but keeps the port from others: until the claim is closed, nobody can listen there."""


class Entrance:
    """Where rank 0 lets the other ranks in.

    Attributes:
        listener: the UNIX socket that they come to.
        reception: what sends them there; None where they know the socket's name.
    """

    def __init__(self, listener: socket.socket, token: bytes, reception: Reception | None = None) -> None:
        """Takes over both; without a reception, every guest shows `token`."""
        self.listener = listener
        self.reception = reception
        self._token = token

    def admits(self, token: bytes, rank: int) -> bool:
        """Whether who shows this token may come in as this rank."""
        if self.reception is not None:
            return self.reception.admits(token, rank)
        return hmac.compare_digest(token, self._token)

    def describe_refused(self) -> str:
        """Whom the reception has turned away, in words; "" if nobody."""
        return "" if self.reception is None else self.reception.describe_refused()

    def close(self) -> None:
        """Lets nobody in any more."""
        self.listener.close()
        if self.reception is not None:
            self.reception.close()

    def withdraw(self) -> Claim | None:
        """As `close`; returns what keeps the port for the job, if it has one."""
        self.listener.close()
        return None if self.reception is None else self.reception.withdraw()


class Transport(Protocol):
    """A way for ranks to reach each other: connections that keep messages apart and carry descriptors.

    Attributes:
        has_port: whether rank 0 takes a port, which it then does also for a job of one rank.
    """

    has_port: bool

    def listen(self) -> Entrance:
        """Rank 0's entrance.

        Raises:
            OSError: it cannot listen; EADDRINUSE where somebody listens already.
            RendezvousError: nobody can listen there.
        """

    def listen_for_latecomers(self) -> socket.socket | None:
        """Where a rank 0 that cannot `listen` tells the others so; None where it cannot."""

    def holder(self) -> str:
        """Who listens in place of this rank 0, in words."""

    def rival(self) -> tuple[socket.socket, bytes] | None:
        """As `connect`, where another rank 0 listens that is certainly of the same job; else None."""

    def connect(self, rank: int, timeout: float) -> tuple[socket.socket, bytes]:
        """A connection of `rank` to rank 0, and the token to show; tries once, at most so long.

        Raises:
            OSError: nobody listens.
            RendezvousError: rank 0 cannot let this rank in.
        """

    def why_not(self) -> str:
        """Why the last `connect` did not reach rank 0, in words; "" where nobody listened."""

    def close(self) -> None:
        """Closes what this rank has open to reach rank 0, but for what `connect` and `listen` have given."""


class AbstractSocket:
    """Transport within one host: a UNIX socket whose abstract name comes from user and endpoint.

    Attributes:
        token: what a guest shows. Who knows the endpoint knows it; the socket's name, which /proc/net/unix shows to
            all, does not give it away.
    """

    has_port = False

    def __init__(self, endpoint: str, namespace: Path | None = None) -> None:
        """`namespace`: the network namespace whose names are meant; None for this process's."""
        self._namespace = namespace
        digest = hashlib.sha256(f"{os.geteuid()}\0{endpoint}".encode()).hexdigest()
        self._address = f"\0triton-dist/{digest[:40]}"
        self.token = hmac.digest(endpoint.encode(), b"descriptors", "sha256")
        assert len(self.token) == TOKEN_BYTES

    def listen(self) -> Entrance:
        return Entrance(self.open(), self.token)

    def open(self) -> socket.socket:
        """A socket that listens under the name. Raises OSError where somebody does already."""
        listener = self._new_socket()
        try:
            listener.bind(self._address)
            listener.listen(_BACKLOG)
        except BaseException:
            listener.close()
            raise
        return listener

    def claim(self) -> socket.socket:
        """A socket that shows who this is to those who dial; one that shows nothing where another has the name."""
        try:
            return self.open()
        except OSError:
            return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def listen_for_latecomers(self) -> socket.socket | None:
        return None

    def holder(self) -> str:
        try:
            with self.dial(_DIAL_SECONDS) as connection:
                pid, _ = peer(connection)
        except OSError:
            return "another process gathers"
        return f"process {pid} gathers"

    def rival(self) -> tuple[socket.socket, bytes] | None:
        return None

    def connect(self, rank: int, timeout: float) -> tuple[socket.socket, bytes]:
        return self.dial(min(timeout, _DIAL_SECONDS)), self.token

    def dial(self, timeout: float) -> socket.socket:
        """A connection to who listens under the name. Raises OSError where nobody does."""
        connection = self._new_socket()
        try:
            connection.settimeout(timeout)
            connection.connect(self._address)
        except BaseException:
            connection.close()
            raise
        return connection

    def _new_socket(self) -> socket.socket:
        with namespaces.entered(self._namespace):
            return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def why_not(self) -> str:
        return ""

    def close(self) -> None:
        return


def peer(connection: socket.socket) -> tuple[int, int]:
    """Process id (0 where it cannot be known) and user id of the other side of a UNIX socket."""
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(packed)
    return pid, uid
