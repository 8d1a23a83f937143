"""Whether the ports that variables name are free: who meets at one that is taken meets nobody, or strangers."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator

from triton_dist import env
from triton_dist.commands.doctor.finding import Finding, ok, warn
from triton_dist.commands.doctor.situation import Situation


def look(situation: Situation) -> Iterator[Finding]:
    """MASTER_PORT, and the port of SHMEM_UID_SESSION_ID."""
    del situation
    free = []
    for variable, port in _named():
        if _is_taken(port):
            yield warn(
                f"{variable}: something listens at port {port} of this host already",
                "ranks fail with `Address already in use`, or meet those of another job",
                f"name another port, or unset it: leases bring ports of their own (ss -ltnp sport = :{port} says who)",
            )
        else:
            free.append(f"{variable} ({port})")
    if free:
        yield ok(f"free: {', '.join(free)}")


def _named() -> Iterator[tuple[str, int]]:
    for variable in (env.MASTER_PORT, env.SHMEM_UID_SESSION_ID):
        text = variable.text().rpartition(":")[2]
        if text.isdecimal() and 0 < int(text) < 65536:
            yield variable.name, int(text)


def _is_taken(port: int) -> bool:
    for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind((address, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return True
    return False
