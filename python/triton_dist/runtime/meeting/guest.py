"""Any rank but 0: brings its descriptors to rank 0 and waits for those of all."""

from __future__ import annotations

import os
import select
import socket
import time

from triton_dist.runtime.meeting import wire
from triton_dist.runtime.meeting.call import Call, Meeting, close_all
from triton_dist.runtime.meeting.errors import TIMEOUT_ADVICE, RendezvousError, RendezvousTimeoutError
from triton_dist.runtime.meeting.transport import Transport, peer

# Rank 0 may have begun to wait only just now, and its clock decides; this much more is for a busy machine.
_PATIENCE_SECONDS = 5.0


def visit(call: Call, transport: Transport, own: tuple[int, int]) -> Meeting:
    """Goes to rank 0 until it has been received; `own` are segment and pidfd of this rank."""
    deadline = time.monotonic() + call.timeout
    while True:
        connection, token = _connect(call, transport, deadline)
        with connection:
            pid, uid = peer(connection)
            if uid != os.geteuid():
                raise RendezvousError(
                    f"process {pid} of user {uid} listens at endpoint {call.endpoint} in place of rank 0: "
                    "choose another ip_port or SHMEM_UID_SESSION_ID"
                )
            meeting = _stay(call, connection, pid, token, own)
        if meeting is not None:
            return meeting
        time.sleep(wire.RETRY_SECONDS)


def _connect(call: Call, transport: Transport, deadline: float) -> tuple[socket.socket, bytes]:
    while (left := deadline - time.monotonic()) > 0:
        try:
            return transport.connect(call.rank, left)
        except OSError:
            # Nobody listens yet, the way there is not there yet, or too many want in at once.
            time.sleep(min(left, wire.RETRY_SECONDS))
    why = transport.why_not()
    raise RendezvousTimeoutError(
        f"rank 0 of {call.world_size} did not come to {call.endpoint} within {call.timeout:g} s "
        f"(seen from rank {call.rank}): {f'{why}; ' if why else ''}{TIMEOUT_ADVICE}"
    )


def _stay(call: Call, connection: socket.socket, host_pid: int, token: bytes, own: tuple[int, int]) -> Meeting | None:
    """One visit at the process that listens; None when it closed the door before it took notice of this rank."""
    deadline = time.monotonic() + call.timeout + _PATIENCE_SECONDS
    try:
        try:
            wire.Hello.of(call, token, own).send(connection)
            head = wire.receive(connection, deadline)
        except ConnectionError:
            if _has_ended(host_pid):
                raise RendezvousError(
                    f"rank 0 (process {host_pid}) ended before all {call.world_size} ranks had come to {call.endpoint}"
                ) from None
            return None
        fds = wire.receive_descriptors(connection, head["descriptors"], deadline)
        try:
            wire.send(connection, {"taken": True})
            wire.receive(connection, deadline)
        except BaseException:
            close_all(fds)
            raise
    except ConnectionError:
        raise RendezvousError(
            f"rank 0 (process {host_pid}) ended while the ranks at {call.endpoint} exchanged their memory"
        ) from None
    except wire.TooManyFilesError as error:
        failure = call.out_of_descriptors(error)
        wire.send_failure(connection, failure)
        raise failure from None
    except RendezvousError:
        raise
    except TimeoutError:
        raise RendezvousTimeoutError(
            f"rank 0 did not bring the {call.world_size} ranks at {call.endpoint} together within {call.timeout:g} s "
            f"(seen from rank {call.rank}): {TIMEOUT_ADVICE}"
        ) from None
    return Meeting.of_descriptors(fds, head["pids"])


def _has_ended(pid: int) -> bool:
    """Whether a process has ended, or is just about to: its sockets close a little before it is gone."""
    if pid <= 0:
        return True  # of another PID name space: nothing more can be known
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return True
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        return bool(poll.poll(2 * wire.SLICE_SECONDS * 1000))
    finally:
        os.close(pidfd)
