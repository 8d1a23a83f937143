"""What a rank asks of a rendezvous, and what it takes home."""

from __future__ import annotations

import os
from dataclasses import dataclass

from triton_dist.runtime.meeting.endpoint import Endpoint
from triton_dist.runtime.meeting.errors import RendezvousError
from triton_dist.runtime.meeting.transport import Claim
from triton_dist.runtime.status_page import SLOT_BYTES


@dataclass(frozen=True)
class Call:
    """What one rank asks for.

    Attributes:
        endpoint: where the job meets.
        rank: number of this process, from 0.
        world_size: how many ranks the job has.
        heap_bytes: symmetric heap that the user asked for, in bytes; must be equal on all ranks.
        segment_bytes: size of the memfd that each rank brings, in bytes.
        timeout: how long to wait for the others, in seconds.
    """

    endpoint: Endpoint
    rank: int
    world_size: int
    heap_bytes: int
    segment_bytes: int
    timeout: float

    @property
    def status_bytes(self) -> int:
        """Size of the status page of the job, in bytes."""
        return SLOT_BYTES * self.world_size

    def out_of_descriptors(self, reason: object) -> RendezvousError:
        """The error of this rank, if it may not have as many open files as the job needs."""
        return RendezvousError(
            f"rank {self.rank} (process {os.getpid()}) may not open the {2 * self.world_size + 1} files that a job of "
            f"{self.world_size} ranks needs ({reason}): raise the limit with ulimit -n"
        )


@dataclass
class Meeting:
    """What a rank takes home from a rendezvous. It owns the descriptors.

    Attributes:
        segments: memfds by rank, each of the size that was asked for.
        pidfds: pidfds by rank, the own one included; readable once that process has ended.
        pids: process ids by rank, as each process sees itself.
        status: memfd of the status page, zeroed, shared by all ranks: `Call.status_bytes` bytes.
        claim: what keeps the port for the job, on rank 0 of one that has a port; the job closes it at its end.
    """

    segments: list[int]
    pidfds: list[int]
    pids: list[int]
    status: int
    claim: Claim | None = None

    @classmethod
    def of_descriptors(cls, fds: list[int], pids: list[int]) -> Meeting:
        """From all descriptors in the order in which they travel: status page, segments, pidfds."""
        return cls(fds[1 : 1 + len(pids)], fds[1 + len(pids) :], pids, fds[0])

    def close_memory(self) -> None:
        """Closes the memfds; what has been mapped stays mapped."""
        close_all([self.status, *self.segments])
        self.status, self.segments = -1, []

    def close(self) -> None:
        """Closes every descriptor that is still open."""
        self.close_memory()
        close_all(self.pidfds)
        self.pidfds = []
        if self.claim is not None:
            self.claim.close()
            self.claim = None


def close_all(fds: list[int]) -> None:
    """Closes descriptors; -1 stands for one that is closed already."""
    for fd in fds:
        if fd >= 0:
            os.close(fd)
