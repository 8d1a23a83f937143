"""The other ranks of a job: who is still there, and how those that are not have ended."""

from __future__ import annotations

import os
import select
from collections.abc import Iterable

from triton_dist.runtime.status_page import State, StatusPage


class Peers:
    """Watches the other ranks by their pidfds and by what they say on the status page.

    Attributes:
        gone: ranks that are not there any more, with how they ended.
        exited: those of them whose host does nothing any more; one that has finalized may.
    """

    def __init__(self, rank: int, pids: list[int], pidfds: list[int], status: StatusPage) -> None:
        """Takes over `pidfds`; both lists are by rank, this one included."""
        self.gone: dict[int, str] = {}
        self.exited: set[int] = set()
        self._rank = rank
        self._pids = pids
        self._pidfds = pidfds
        self._status = status
        self._poll = select.poll()
        self._rank_of = {fd: peer for peer, fd in enumerate(pidfds) if peer != rank}
        for fd in self._rank_of:
            self._poll.register(fd, select.POLLIN)

    def look(self) -> None:
        """Notes the ranks that have ended or left since the last look."""
        for fd, _ in self._poll.poll(0):
            self._poll.unregister(fd)
            self.exited.add(self._rank_of[fd])
            self._note(self._rank_of[fd])
        for peer in self._rank_of.values():
            if peer not in self.gone and self._status.state(peer)[0] is not State.MEMBER:
                self._note(peer)

    def _note(self, peer: int) -> None:
        state, text = self._status.state(peer)
        who = f"rank {peer} (process {self._pids[peer]})"
        if state is State.FINALIZED:
            self.gone[peer] = f"{who} has finalized shmem"
        elif state is State.EXITED:
            self.exited.add(peer)
            self.gone[peer] = f"{who} left without aclshmem_finalize" + (f" ({text})" if text else "")
        else:
            self.gone[peer] = f"{who} has died without aclshmem_finalize, killed or crashed"

    def have_exited(self, world_size: int) -> bytes:
        """A byte for each rank: 1 where its process has ended, or has announced that it does nothing more."""
        return bytes(int(rank in self.exited) for rank in range(world_size))

    def all_gone(self) -> bool:
        """Whether there were other ranks, and none of them is left."""
        return len(self.gone) == len(self._rank_of) > 0

    def missing(self, needed: Iterable[int] | None) -> list[int]:
        """Of the ranks `needed`, those that are gone; None: all ranks if all are gone, since any of them would do."""
        if needed is None:
            return sorted(self.gone) if self.all_gone() else []
        return [peer for peer in needed if peer in self.gone]

    def describe(self, ranks: Iterable[int]) -> str:
        """How these ranks, all of them gone, have ended."""
        return "; ".join(self.gone[rank] for rank in ranks)

    def close(self) -> None:
        """Stops watching."""
        for fd in self._pidfds:
            os.close(fd)
        self._pidfds = []
