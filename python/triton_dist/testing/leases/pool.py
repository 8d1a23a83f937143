"""Leases: all NPUs of a test at once, until the last process that can touch them is gone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from triton_dist.testing.leases.directory import LeaseDirectory
from triton_dist.testing.leases.endpoint import claim_port, new_session
from triton_dist.testing.leases.errors import LeaseError
from triton_dist.testing.leases.inventory import Inventory
from triton_dist.testing.leases.line import Place

# Seconds between two looks: short for the first in the line, for whom NPUs may be free any moment.
_LOOK_AS_FIRST = 0.002
_LOOK_IN_LINE = 0.01


@dataclass
class Lease:
    """NPUs that one test has to itself.

    Attributes:
        npus: the indices of the NPUs in the pool, ascending.
        session: the rendezvous name, known to nobody else.
        port: a TCP port that no other lease of the host has.
        since: when the lease began, on the host's monotonic clock, in seconds.
        fds: the descriptors that hold the lease. Every process that can touch the NPUs must have them open: the
            lease ends when the last of these processes has closed them.
        released: whether this process has given up its share.
    """

    npus: tuple[int, ...]
    session: str
    port: int
    since: float
    fds: tuple[int, ...]
    released: bool = False

    def environ(self) -> dict[str, str]:
        """The variables by which ranks find each other and nobody else, wherever their code says they meet."""
        return {"TRITON_DIST_SESSION": self.session, "TRITON_DIST_MASTER_PORT": str(self.port)}

    def release(self) -> None:
        """Gives up this process's share of the lease; once is enough, more does no harm."""
        if not self.released:
            self.released = True
            _close(self.fds)


class NpuPool:
    """The NPUs of the host, shared with every other pool that uses the same directory."""

    def __init__(self, inventory: Inventory, directory: LeaseDirectory) -> None:
        self.inventory = inventory
        self._directory = directory

    def acquire(self, count: int, while_waiting: Callable[[], None] = lambda: None) -> Lease:
        """Leases `count` NPUs, all at once; waits for them in the line of the host.

        Args:
            count: how many NPUs, at least 1.
            while_waiting: called between two looks; what it raises ends the waiting.

        Raises:
            ValueError: `count` is less than 1.
            LeaseError: there are not so many NPUs, or the lease directory or ports cannot be used.
        """
        if count < 1:
            raise ValueError(f"a lease of {count} NPUs: it takes at least 1")
        keys = self.inventory.keys
        if count > len(keys):
            raise LeaseError(
                f"{count} ranks need {count} NPUs, and the pool has {self.inventory.description}: "
                f"{self.inventory.how_to_get_more}"
            )
        place = Place(self._directory, count)
        try:
            while not (place.is_first() and (held := self._take(keys, count))):
                while_waiting()
                time.sleep(_LOOK_AS_FIRST if place.is_first() else _LOOK_IN_LINE)
        finally:
            place.leave()
        fds = tuple(held.values())
        try:
            port, claim = claim_port(min(held))
            return Lease(tuple(held), new_session(), port, time.monotonic(), (*fds, claim))
        except BaseException:
            _close(fds)
            raise

    def _take(self, keys: tuple[str, ...], count: int) -> dict[int, int]:
        """Descriptors of `count` NPUs by index, or nothing at all."""
        held: dict[int, int] = {}
        try:
            for index, key in enumerate(keys):
                fd = self._directory.hold(key)
                if fd is not None:
                    held[index] = fd
                if len(held) == count:
                    return held
        except BaseException:
            _close(held.values())
            raise
        _close(held.values())
        return {}


def _close(fds: Iterable[int]) -> None:
    for fd in fds:
        os.close(fd)
