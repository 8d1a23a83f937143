"""How the ranks of a job find each other and hand round their memory.

The ranks of one host meet at an *endpoint*. Rank 0 listens there, every rank brings its segment (a memfd) and a pidfd
of itself, and once all have come, rank 0 gives everything to everyone. Descriptors travel over a UNIX socket in the
abstract name space: there is no file, so nothing is left after a crash.

- Where the endpoint is an address, ranks meet over TCP first (meeting/tcp.py): each proves that it knows the secret of
  the job, and is told the name of the UNIX socket, which is random. Rank 0 keeps the port until the job ends, as
  aclshmem does, and the same port can be used again at once.
- Within a lease of NPUs, the endpoint is a name that only the job has, and the name of the UNIX socket comes from it.
  Such names belong to a network namespace. Where the ranks of a test are in several of one machine, they all make
  their sockets in one of these.

What goes wrong is told to every rank in the same words: rank 0 stays for a moment to tell those who come late, also
where it cannot listen at all.

Anybody on the host can reach an abstract socket. Both sides therefore ask the kernel who the other one is, and
connections of other users, or without a proper hello, are dropped without disturbing the meeting.
"""

from __future__ import annotations

import contextlib
import logging
import os

from triton_dist import env
from triton_dist.runtime.meeting.call import Call as Call
from triton_dist.runtime.meeting.call import Meeting as Meeting
from triton_dist.runtime.meeting.endpoint import Endpoint as Endpoint
from triton_dist.runtime.meeting.errors import RendezvousError as RendezvousError
from triton_dist.runtime.meeting.errors import RendezvousTimeoutError as RendezvousTimeoutError
from triton_dist.runtime.meeting.guest import visit
from triton_dist.runtime.meeting.host import Host
from triton_dist.runtime.meeting.tcp import TcpAddress as TcpAddress
from triton_dist.runtime.meeting.transport import AbstractSocket as AbstractSocket
from triton_dist.runtime.meeting.transport import Transport as Transport

logger = logging.getLogger("aclshmem.rendezvous")


def meet(call: Call) -> Meeting:
    """Waits until all ranks of the job have come, and gives each the segments of all.

    Raises:
        ValueError: rank, world size or a size is not possible.
        RendezvousTimeoutError: ranks did not come within `call.timeout` seconds.
        RendezvousError: the ranks do not agree, two have one number, the endpoint is in use, cannot be listened at or
            is not known, or a rank ended meanwhile.
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
        transport = _transport(call)
        own.callback(transport.close)
        if rank == 0:
            meeting = Host(call, transport).receive((segment, pidfd))
        else:
            meeting = visit(call, transport, (segment, pidfd))
    logger.info("rank %d has met the %d ranks at %s", rank, world_size, call.endpoint)
    return meeting


def _transport(call: Call) -> Transport:
    if call.endpoint.address is None:
        return AbstractSocket(call.endpoint.name, env.TRITON_DIST_SESSION_NAMESPACE.get())
    return TcpAddress(call.endpoint, call.world_size)
