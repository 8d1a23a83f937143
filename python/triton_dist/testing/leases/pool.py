"""Leases: all NPUs of a test at once, until the last process that can touch them is gone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from triton_dist.testing.leases.directory import LeaseDirectory
from triton_dist.testing.leases.endpoint import claim_port, new_session
from triton_dist.testing.leases.errors import LeaseError
from triton_dist.testing.leases.holdings import Holding, Holdings, State
from triton_dist.testing.leases.inventory import Inventory
from triton_dist.testing.leases.line import Place
from triton_dist.testing.leases.parties import Party
from triton_dist.testing.leases.quarantine import Quarantine
from triton_dist.testing.leases.rule import left_for, passed_by

# Seconds between two looks: short for the first in the line, for whom NPUs may be free any moment.
_LOOK_AS_FIRST = 0.002
_LOOK_IN_LINE = 0.01
# How long a test waits, in seconds, while so many NPUs are in quarantine that the others are too few for it.
_PATIENCE_WITH_QUARANTINE = 60.0


@dataclass
class Lease:
    """NPUs that one test has to itself.

    Attributes:
        npus: the numbers of the NPUs, ascending.
        session: the rendezvous name, known to nobody else.
        port: a TCP port that no other lease of the host has, for torch.distributed.
        shmem_port: another one, for aclshmem on real NPUs; None where NPUs are simulated.
        since: when the lease began, on the host's monotonic clock, in seconds.
        fds: the descriptors that hold the lease. Every process that can touch the NPUs must have them open: the
            lease ends when the last of these processes has closed them.
        ticket: its place in the order of requests; smaller than those of all that came later; -1 if it was in no line.
        released: whether this process has given up its share.
    """

    npus: tuple[int, ...]
    session: str
    port: int
    shmem_port: int | None
    since: float
    fds: tuple[int, ...]
    ticket: int
    _write: Callable[[State, str], None] = field(repr=False)
    _suspicion: str = ""
    released: bool = False

    def environ(self) -> dict[str, str]:
        """The variables by which ranks find each other and nobody else, wherever their code says they meet."""
        environ = {"TRITON_DIST_SESSION": self.session, "TRITON_DIST_MASTER_PORT": str(self.port)}
        return environ if self.shmem_port is None else {**environ, "TRITON_DIST_SHMEM_PORT": str(self.shmem_port)}

    def suspect(self, reason: str) -> None:
        """Has real NPUs looked at before the next test gets them: something hung on them, or was killed.

        Args:
            reason: what happened, in a few words for people.
        """
        self._suspicion = reason

    def release(self) -> None:
        """Gives up this process's share of the lease; once is enough, more does no harm."""
        if not self.released:
            self.released = True
            try:
                self._write("suspect" if self._suspicion else "released", self._suspicion)
            finally:
                _close(self.fds)


class NpuPool:
    """The NPUs of the host, shared with every other pool that uses the same directory.

    Attributes:
        inventory: which NPUs it may lease.
        directory: where its leases are kept.
    """

    def __init__(self, inventory: Inventory, directory: LeaseDirectory, worker: str = "") -> None:
        """`worker`: the name of this process in pytest-xdist, for people who look who has what."""
        self.inventory = inventory
        self.directory = directory
        self._worker = worker
        self._holdings = Holdings(directory, inventory.kind)
        self._quarantine = Quarantine(inventory, self._holdings)

    def acquire(self, count: int, while_waiting: Callable[[], None] = lambda: None, test: str = "") -> Lease:
        """Leases `count` NPUs, all at once; waits for them in the line of the host.

        Args:
            count: how many NPUs, at least 1.
            while_waiting: called between two looks; what it raises ends the waiting.
            test: the name of the test, for people who look who has what.

        Raises:
            ValueError: `count` is less than 1.
            LeaseError: there are not so many NPUs, or too many are in quarantine, or the lease directory or ports
                cannot be used.
        """
        if count < 1:
            raise ValueError(f"a lease of {count} NPUs: it takes at least 1")
        npus = frozenset(self.inventory.npus)
        if count > len(npus):
            raise LeaseError(
                f"{count} ranks need {count} NPUs, and the pool has {self.inventory.description}: "
                f"{self.inventory.how_to_get_more}"
            )
        party = Party.here(self._worker, test)
        place = Place(self.directory, self.inventory.kind, npus, count, party, while_waiting)
        try:
            taken = self._wait(place, party, while_waiting)
        finally:
            place.leave()
        return self._lease(taken, place.request.ticket)

    def take_over(self, npus: tuple[int, ...], fds: Iterable[int], test: str = "") -> Lease:
        """A lease of NPUs that an earlier one of this user has left to processes which still hold them.

        Args:
            npus, fds: of that lease.
            test: the name of the test, for people who look who has what.

        Raises:
            LeaseError: ports or the lease directory cannot be used.
        """
        fd, *rest = fds
        _close(rest)
        holder = Party.here(self._worker, test)
        lease = self._lease(_Taken(npus, fd, holder), ticket=-1)
        self._holdings.write(fd, npus, Holding(holder, "held"))
        return lease

    def free(self) -> frozenset[int]:
        """The NPUs that nobody holds now."""
        return self._holdings.free(self.inventory.npus)

    def _wait(self, place: Place, party: Party, while_waiting: Callable[[], None]) -> _Taken:
        too_few_since: float | None = None
        while True:
            outcome = self._try(place, party)
            if isinstance(outcome, _Taken):
                return outcome
            if len(self.inventory.npus) - len(outcome) >= place.request.count:
                too_few_since = None
            elif too_few_since is None:
                too_few_since = time.monotonic()
            elif time.monotonic() - too_few_since > _PATIENCE_WITH_QUARANTINE:
                raise LeaseError(self._too_few(place.request.count, outcome))
            if outcome:
                self._quarantine.look_after(outcome)
            while_waiting()
            place.note_look()
            time.sleep(_LOOK_AS_FIRST if place.is_first else _LOOK_IN_LINE)

    def _try(self, place: Place, party: Party) -> _Taken | dict[int, str]:
        """Takes NPUs if it is the turn of `place`; else tells which ones it could have but for quarantine, and why."""
        request = place.request
        # The others are not disturbed by who cannot have what he wants anyway.
        if len(self.free()) < request.count:
            return {}
        with place.turn() as before:
            if before is None:
                return {}
            ahead = [other.request for other in before]
            asked = request.npus.union(*(other.npus for other in ahead))
            free = self._holdings.free(sorted(asked))
            inmates = self._quarantine.inmates(free)
            left = left_for(request, ahead, free - inmates.keys())
            if len(left) < request.count:
                return {number: inmates[number] for number in inmates if number in request.npus}
            chosen = self.inventory.best_group(left, request.count)
            # First, so that whoever is killed in between has at most given others a pass too many.
            passed = passed_by(frozenset(chosen), ahead)
            for other in before:
                if other.request in passed:
                    place.note_passed(other)
            holder = replace(party, since=time.monotonic())
            fd = self._holdings.take(chosen, holder)
            return {} if fd is None else _Taken(chosen, fd, holder)

    def _lease(self, taken: _Taken, ticket: int) -> Lease:
        claims: list[tuple[int, int]] = []
        try:
            for _ in range(2 if self.inventory.kind == "npu" else 1):
                claims.append(claim_port(min(taken.npus)))
        except BaseException:
            _close([taken.fd, *(claim for _, claim in claims)])
            raise
        (port, _), *more = claims
        return Lease(
            npus=taken.npus,
            session=new_session(),
            port=port,
            shmem_port=more[0][0] if more else None,
            since=taken.holder.since,
            fds=(taken.fd, *(claim for _, claim in claims)),
            ticket=ticket,
            _write=lambda state, reason: self._holdings.write(
                taken.fd, taken.npus, Holding(taken.holder, state, reason)
            ),
        )

    def _too_few(self, count: int, inmates: dict[int, str]) -> str:
        others = len(self.inventory.npus) - len(inmates)
        reasons = "; ".join(f"NPU {number}: {reason}" for number, reason in sorted(inmates.items()))
        return (
            f"{count} ranks need {count} NPUs, and {others} of the pool are fit: the others are in quarantine "
            f"({reasons}); reset them (npu-smi set -t reset -i ID -c CHIP), or leave them out with --npus=LIST"
        )


@dataclass(frozen=True)
class _Taken:
    """NPUs, the descriptor that holds them, and who has them since when."""

    npus: tuple[int, ...]
    fd: int
    holder: Party


def _close(fds: Iterable[int]) -> None:
    for fd in fds:
        os.close(fd)
