"""Ports that unique ids name: free ones, kept from others until rank 0 listens there.

A reservation is a socket that is bound and does not listen. Rank 0 may listen beside it, also from another process,
since both allow the reuse of the address; the system gives the port to nobody who just asks for one.
"""

from __future__ import annotations

import contextlib
import os
import socket

from triton_dist.runtime.meeting.endpoint import Place

# A process makes one unique id for each of its jobs; those that never came to one go in the order they came.
_MOST = 64

# Descriptors of the sockets.
_reservations: dict[str, int] = {}


def reserve(place: Place) -> int:
    """A port that is free at the address of `place`. Raises OSError where there is none, or no such address."""
    reservation = place.new_socket()
    try:
        reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reservation.bind((place.address[0], 0, *place.address[2:]))
        port: int = reservation.getsockname()[1]
    except BaseException:
        reservation.close()
        raise
    while len(_reservations) >= _MOST:
        os.close(_reservations.pop(next(iter(_reservations))))
    _reservations[_key(place.host, port)] = reservation.detach()
    return port


def release(place: Place) -> None:
    """Ends the reservation of this process, if it has one for `place`."""
    reservation = _reservations.pop(_key(place.host, place.address[1]), None)
    if reservation is not None:
        os.close(reservation)


def _key(host: str, port: int) -> str:
    return f"{host} {port}"


def _forget_in_child() -> None:
    for reservation in _reservations.values():
        with contextlib.suppress(OSError):
            os.close(reservation)
    _reservations.clear()


os.register_at_fork(after_in_child=_forget_in_child)
