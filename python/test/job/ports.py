"""Ports that no other test has."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def kept(family: socket.AddressFamily = socket.AF_INET) -> Iterator[int]:
    """A free port of the loopback: whoever asks the system for a port gets another, whoever names this one may listen.

    It is bound and does not listen, and allows the reuse of its address, as rank 0 does.
    """
    host = "::1" if family == socket.AF_INET6 else "127.0.0.1"
    with socket.socket(family, socket.SOCK_STREAM) as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.bind((host, 0))
        yield keeper.getsockname()[1]
