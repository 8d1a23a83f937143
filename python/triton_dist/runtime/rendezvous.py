"""How the ranks of a job find each other and hand round their memory.

The ranks of one host meet at an *endpoint*, any text that they all know. Rank 0 listens there, every rank brings its
segment (a memfd) and a pidfd of itself, and once all have come, rank 0 gives everything to everyone. Descriptors
travel over a UNIX socket in the abstract name space: there is no file and no port, so nothing is left after a crash
and the same endpoint can be used again at once.

What goes wrong is told to every rank in the same words: rank 0 stays for a moment to tell those who come late.

Anybody on the host can reach an abstract socket. Both sides therefore ask the kernel who the other one is, and
connections of other users, or without a proper hello, are dropped without disturbing the meeting.
"""

from __future__ import annotations

import contextlib
import os

from triton_dist.runtime.meeting.call import Call as Call
from triton_dist.runtime.meeting.call import Meeting as Meeting
from triton_dist.runtime.meeting.call import RendezvousError as RendezvousError
from triton_dist.runtime.meeting.call import RendezvousTimeoutError as RendezvousTimeoutError
from triton_dist.runtime.meeting.guest import visit
from triton_dist.runtime.meeting.host import Host
from triton_dist.runtime.meeting.transport import AbstractSocket as AbstractSocket
from triton_dist.runtime.meeting.transport import Transport as Transport


def meet(call: Call, transport: Transport | None = None) -> Meeting:
    """Waits until all ranks of the job have come, and gives each the segments of all.

    Raises:
        ValueError: rank, world size or a size is not possible.
        RendezvousTimeoutError: ranks did not come within `call.timeout` seconds.
        RendezvousError: the ranks do not agree, two have one number, the endpoint is in use, or one ended meanwhile.
    """
    rank, world_size = call.rank, call.world_size
    if world_size < 1:
        raise ValueError(f"world size is {world_size}: it must be at least 1")
    if not 0 <= rank < world_size:
        raise ValueError(f"rank is {rank}: in a job of {world_size} it must be from 0 to {world_size - 1}")
    with contextlib.ExitStack() as own:
        segment = os.memfd_create("triton-dist-segment", os.MFD_CLOEXEC)
        own.callback(os.close, segment)
        os.ftruncate(segment, call.segment_bytes)
        pidfd = os.pidfd_open(os.getpid())
        own.callback(os.close, pidfd)
        transport = transport or AbstractSocket(call.endpoint)
        if rank == 0:
            return Host(call, transport).receive((segment, pidfd))
        return visit(call, transport, (segment, pidfd))
