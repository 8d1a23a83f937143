"""What makes a lease's rendezvous its own: a session name that nobody can guess and a port that nobody else has.

Every NPU owns a block of ports, below the range from which Linux takes ports for outgoing connections. A lease claims
one port of its block by holding an abstract socket with the port's number in its name. Such names belong to the
network namespace, as ports do: so two leases cannot have the same port, not even when their pools use different
directories, and the claim ends with the last process that holds the lease.
"""

from __future__ import annotations

import errno
import secrets
import socket

from triton_dist.testing.leases.errors import LeaseError

_FIRST_PORT = 20000
# 1,024 NPUs, the most that can be simulated, end at 32,288; outgoing connections start at 32,768.
_MOST_NPUS = 1024
_PORTS_PER_NPU = 12


def new_session() -> str:
    return secrets.token_hex(16)


def claim_port(npu: int) -> tuple[int, int]:
    """A port of the block of `npu` that can be listened on now, and the descriptor that holds the claim on it.

    The first one tried is chosen at random, so that a straggler of an earlier lease hardly ever finds the new one.

    Raises:
        LeaseError: other leases or programs have all ports of the block, or there is no loopback.
    """
    _check_loopback()
    first = _FIRST_PORT + npu % _MOST_NPUS * _PORTS_PER_NPU
    offset = secrets.randbelow(_PORTS_PER_NPU)
    for step in range(_PORTS_PER_NPU):
        port = first + (offset + step) % _PORTS_PER_NPU
        claim = _claim(port)
        if claim is None:
            continue
        # Only the owner of the claim tries the port, so nobody's trial is in the way of another's ranks.
        if _can_listen(port):
            return port, claim.detach()
        claim.close()
    raise LeaseError(
        f"no port is free for the ranks on NPU {npu}: other leases or programs have all of "
        f"{first}-{first + _PORTS_PER_NPU - 1}; end one of them (ss -ltnp shows them)"
    )


def _check_loopback() -> None:
    """Ranks would try to reach each other for half an hour where the loopback is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Sends nothing: it only has the kernel choose the way.
            probe.connect(("127.0.0.1", _FIRST_PORT))
        except OSError as error:
            raise LeaseError(
                f"ranks cannot reach each other at 127.0.0.1 ({error.strerror}): the loopback is down; "
                "`ip link set lo up` brings it up"
            ) from None


def _claim(port: int) -> socket.socket | None:
    """A socket that holds the claim on `port`; None if another has it."""
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claim.bind(f"\0triton-dist/port/{port}")
    except OSError as error:
        claim.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise
    return claim


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
