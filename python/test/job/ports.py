"""Ports that no other test has."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator

import pytest


@contextlib.contextmanager
def kept(family: socket.AddressFamily = socket.AF_INET) -> Iterator[int]:
    """A free port of the loopback: whoever asks the system for a port gets another, whoever names this one may listen.

    It is bound and does not listen, and allows the reuse of its address, as rank 0 does. Skips the test where the host
    has no loopback of that family.
    """
    host = "::1" if family == socket.AF_INET6 else "127.0.0.1"
    if family == socket.AF_INET6 and not os.path.exists("/proc/net/if_inet6"):
        pytest.skip("this host has no IPv6")
    with socket.socket(family, socket.SOCK_STREAM) as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            keeper.bind((host, 0))
        except OSError as error:
            pytest.skip(f"this host has no loopback {host}: {error}")
        yield keeper.getsockname()[1]
