"""The waiting line for NPUs; nobody has to clean up after the dead.

A place in the line is a slot of a file: a byte to lock, and beside it the request for others to read. The kernel's
locks alone say which slots are in use, so a process that is killed leaves the line by dying. Who joins or takes NPUs
has the whole file to itself for a moment, by a lock on its first byte.

A process that is stopped does not look after its place. It keeps it, but others do not wait for it meanwhile.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from triton_dist.devices.visible import as_text, parse_numbers
from triton_dist.testing.leases.directory import LeaseDirectory
from triton_dist.testing.leases.locks import is_locked, lock_bytes, unlock_bytes
from triton_dist.testing.leases.parties import Party, from_bytes, to_bytes
from triton_dist.testing.leases.rule import Request

_NAME = "line"
_MUTEX = 0
_CHECKER = 1
_GATE = 2
_TICKET_AT = 8
_TICKET = struct.Struct("<Q")
# At the beginning of a slot: ticket, how often passed, when its owner last looked (host's monotonic clock, seconds).
_SLOT = struct.Struct("<QQd")
_PASSED = struct.Struct("<Q")
_SEEN = struct.Struct("<d")
_ROOM = 8192
# The file grows by so many slots.
_SLOTS = 16
# Seconds without a look after which others do not wait for a place: its process is stopped, or cannot go on.
_ABSENT = 30.0
# Seconds between two notes that the owner looks after its place.
_NOTED = 1.0
_MUTEX_LOOK = 0.001
_GATE_LOOK = 0.02


@dataclass(frozen=True)
class Waiting:
    """A place in the line, as others see it."""

    slot: int
    request: Request
    party: Party
    seen: float

    @property
    def is_absent(self) -> bool:
        return time.monotonic() - self.seen > _ABSENT


class Place:
    """A place in the line, from joining to `leave`.

    Attributes:
        slot: where it lies in the file.
        request: what is waited for.
        is_first: nobody was before it when that was last looked at.
    """

    def __init__(
        self,
        directory: LeaseDirectory,
        kind: str,
        npus: frozenset[int],
        count: int,
        party: Party,
        while_waiting: Callable[[], None],
    ) -> None:
        """Joins the line at its end.

        Args:
            directory: where the line's file lies.
            kind, npus, count: of the request.
            party: who waits.
            while_waiting: called if the line is another's for the moment; what it raises ends the joining.

        Raises:
            LeaseError: the lease directory cannot be used.
        """
        self._directory = directory
        self._noted = time.monotonic()
        self._fd = directory.open(_NAME, (1 + _SLOTS) * _ROOM)
        try:
            with self._alone(while_waiting):
                self.slot = self._free_slot()
                waiting = self._others()
                self.is_first = not any(other.request.kind == kind for other in waiting)
                (after,) = _TICKET.unpack(os.pread(self._fd, _TICKET.size, _TICKET_AT))
                ticket = max([after, *(other.request.ticket + 1 for other in waiting)])
                self.request = Request(ticket, kind, npus, count)
                head = _SLOT.pack(ticket, 0, time.monotonic())
                text = to_bytes(party, _ROOM - _SLOT.size, kind=kind, npus=as_text(sorted(npus)), count=count)
                with directory.usable():
                    os.pwrite(self._fd, head + text, self.slot * _ROOM)
                    os.pwrite(self._fd, _TICKET.pack(ticket + 1), _TICKET_AT)
        except BaseException:
            os.close(self._fd)
            raise

    @contextmanager
    def turn(self) -> Iterator[list[Waiting] | None]:
        """Has the line to itself while entered, with those before this place, oldest first; None if another has it.

        Those that are absent are left out.
        """
        if not lock_bytes(self._fd, _MUTEX):
            yield None
            return
        try:
            kind, ticket = self.request.kind, self.request.ticket
            before = [o for o in self._others() if o.request.kind == kind and o.request.ticket < ticket]
            ahead = sorted((o for o in before if not o.is_absent), key=lambda other: other.request.ticket)
            self.is_first = not ahead
            yield ahead
        finally:
            unlock_bytes(self._fd, _MUTEX)

    def note_passed(self, other: Waiting) -> None:
        """Writes down that `other` has been passed once more; within `turn`."""
        os.pwrite(self._fd, _PASSED.pack(other.request.passed + 1), other.slot * _ROOM + _TICKET.size)

    def note_look(self) -> None:
        """Writes down that this place's owner has just looked after it, if that has not been done for a while."""
        now = time.monotonic()
        if now - self._noted > _NOTED:
            self._noted = now
            os.pwrite(self._fd, _SEEN.pack(now), self.slot * _ROOM + _TICKET.size + _PASSED.size)

    def leave(self) -> None:
        os.close(self._fd)

    @contextmanager
    def _alone(self, while_waiting: Callable[[], None]) -> Iterator[None]:
        while not lock_bytes(self._fd, _MUTEX):
            while_waiting()
            time.sleep(_MUTEX_LOOK)
        try:
            yield
        finally:
            unlock_bytes(self._fd, _MUTEX)

    def _free_slot(self) -> int:
        slot = 1
        while not lock_bytes(self._fd, slot * _ROOM):
            slot += 1
        if os.fstat(self._fd).st_size < (slot + 1) * _ROOM:
            with self._directory.usable():
                os.posix_fallocate(self._fd, 0, (slot + _SLOTS) * _ROOM)
        return slot

    def _others(self) -> list[Waiting]:
        return [waiting for waiting in _in_line(self._fd) if waiting.slot != self.slot]


@contextmanager
def sole_checker(directory: LeaseDirectory) -> Iterator[bool]:
    """Whether this is the one process of the host that looks after NPUs in quarantine, while entered.

    Raises:
        LeaseError: the lease directory cannot be used.
    """
    fd = directory.open(_NAME, 0)
    try:
        yield lock_bytes(fd, _CHECKER)
    finally:
        os.close(fd)


@contextmanager
def gate(directory: LeaseDirectory, while_waiting: Callable[[], None]) -> Iterator[None]:
    """Waits until no other test on several nodes is about to take NPUs of this host; none is while entered.

    Such a test holds NPUs while it waits for more. Two that had some each might wait for each other for ever.

    Raises:
        LeaseError: the lease directory cannot be used.
    """
    fd = directory.open(_NAME, 0)
    try:
        while not lock_bytes(fd, _GATE):
            while_waiting()
            time.sleep(_GATE_LOOK)
        yield
    finally:
        os.close(fd)


def in_line(directory: LeaseDirectory) -> list[Waiting]:
    """Who waits now, oldest first. Changes nothing.

    Raises:
        LeaseError: the lease directory cannot be used.
    """
    fd = directory.open_to_read(_NAME)
    if fd is None:
        return []
    try:
        return sorted(_in_line(fd), key=lambda waiting: waiting.request.ticket)
    finally:
        os.close(fd)


def _in_line(fd: int) -> Iterator[Waiting]:
    for slot in range(1, os.fstat(fd).st_size // _ROOM):
        if is_locked(fd, slot * _ROOM) and (waiting := _waiting(slot, os.pread(fd, _ROOM, slot * _ROOM))):
            yield waiting


def _waiting(slot: int, raw: bytes) -> Waiting | None:
    """What a slot says; None if its owner has not written it yet, or another program has."""
    if len(raw) < _SLOT.size:
        return None
    ticket, passed, seen = _SLOT.unpack(raw[: _SLOT.size])
    read = from_bytes(raw[_SLOT.size :])
    if read is None:
        return None
    party, more = read
    try:
        npus = parse_numbers(more["npus"], "npus")
        request = Request(ticket, str(more["kind"]), npus, int(more["count"]), passed)
    except (ValueError, KeyError, TypeError):
        return None
    return Waiting(slot, request, party, seen)
