"""How ranks reach each other: today within one host."""

from __future__ import annotations

import hashlib
import os
import socket
import struct
from typing import Protocol

_CREDENTIALS = struct.Struct("=iII")  # struct ucred: pid, uid, gid


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
