"""Which interface of this host leads to another."""

from __future__ import annotations

import socket

import psutil


def interface_towards(address: str, port: int) -> str | None:
    """The name of the interface from which this host reaches `address`; None where that cannot be told."""
    try:
        found = socket.getaddrinfo(address, port, type=socket.SOCK_DGRAM)
    except OSError:
        return None
    for family, kind, protocol, _, where in found:
        try:
            with socket.socket(family, kind, protocol) as probe:
                # Sends nothing: it only has the kernel choose the way.
                probe.connect(where)
                own = probe.getsockname()[0]
        except OSError:
            continue
        for name, entries in psutil.net_if_addrs().items():
            if any(entry.address.partition("%")[0] == own for entry in entries):
                return name
    return None
