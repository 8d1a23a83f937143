"""What makes a lease's rendezvous its own: a session name that nobody can guess and a port that nobody else has.

Every NPU owns a block of ports, and whoever leases the NPU has the block with it: two leases of a host cannot
choose the same port, whatever order they come in. The blocks lie below the range from which Linux takes ports for
outgoing connections.
"""

from __future__ import annotations

import errno
import secrets
import socket

from triton_dist.testing.leases.errors import LeaseError

_FIRST_PORT = 20000
# 1,024 NPUs, the most that can be simulated, end at 32,288; outgoing connections start at 32,768.
_PORTS_PER_NPU = 12


def new_session() -> str:
    return secrets.token_hex(16)


def free_port(npu: int) -> int:
    """A port of the block of `npu` that can be listened on now.

    The first one tried is chosen at random, so that a straggler of an earlier lease hardly ever finds the new one.

    Raises:
        LeaseError: other programs listen on all ports of the block.
    """
    first = _FIRST_PORT + npu * _PORTS_PER_NPU
    offset = secrets.randbelow(_PORTS_PER_NPU)
    for step in range(_PORTS_PER_NPU):
        port = first + (offset + step) % _PORTS_PER_NPU
        if _can_listen(port):
            return port
    raise LeaseError(
        f"no port is free for the ranks on NPU {npu}: other programs listen on all of "
        f"{first}-{first + _PORTS_PER_NPU - 1}; end one of them (ss -ltnp shows them)"
    )


def _can_listen(port: int) -> bool:
    """Whether `port` can be listened on at all addresses, as torch's store does."""
    for family, address in ((socket.AF_INET6, "::"), (socket.AF_INET, "0.0.0.0")):
        try:
            probe = socket.socket(family, socket.SOCK_STREAM)
        except OSError:
            continue  # a host without this family
        with probe:
            # Connections of an earlier lease that linger in TIME_WAIT do not count.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                probe.bind((address, port))
                probe.listen(1)
            except OSError as error:
                if error.errno == errno.EADDRNOTAVAIL:
                    continue  # IPv6 is there but switched off
                return False
    return True
