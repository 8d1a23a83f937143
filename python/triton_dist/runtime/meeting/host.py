"""Rank 0: gathers the others at the endpoint, then gives everything to everyone."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import selectors
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from triton_dist.runtime.meeting import wire
from triton_dist.runtime.meeting.call import Call, Meeting, close_all
from triton_dist.runtime.meeting.errors import TIMEOUT_ADVICE, RendezvousError, RendezvousTimeoutError
from triton_dist.runtime.meeting.transport import Claim, Entrance, Transport, peer

logger = logging.getLogger("aclshmem.rendezvous")

# How long a failed rank 0 stays to tell ranks that come late what happened.
_GRACE_SECONDS = 1.0
# How long rank 0 retries where another process listens: that one may be ending.
_TAKEN_SECONDS = 1.5
# How long a connection to the UNIX socket may say nothing.
_STRANGER_SECONDS = 10.0


@dataclass
class _Guest:
    """A rank that has said a proper hello."""

    connection: socket.socket
    hello: wire.Hello

    def __str__(self) -> str:
        return f"rank {self.hello.rank} (process {self.hello.pid})"

    def close(self) -> None:
        """Ends the connection and closes what it brought."""
        self.connection.close()
        self.hello.close()


class Host:
    """Rank 0 of a job."""

    def __init__(self, call: Call, transport: Transport) -> None:
        self._call = call
        self._transport = transport
        self._guests: dict[int, _Guest] = {}

    def receive(self, own: tuple[int, int]) -> Meeting:
        """Gathers all ranks and gives each the descriptors of all; `own` are segment and pidfd of rank 0."""
        try:
            claim = None
            if self._call.world_size > 1 or self._transport.has_port:
                claim = self._gather(time.monotonic() + self._call.timeout, own)
            try:
                meeting = self._share(own)
            except BaseException as failure:
                if claim is not None:
                    claim.close()
                if isinstance(failure, RendezvousError):
                    for guest in self._guests.values():
                        wire.send_failure(guest.connection, failure)
                raise
            meeting.claim = claim
            for guest in self._guests.values():
                with contextlib.suppress(OSError):  # it has ended since: its pidfd tells
                    wire.send(guest.connection, {"go": True})
            return meeting
        finally:
            for guest in self._guests.values():
                guest.close()

    # ------------------------------------------------------------------------------------------- gather

    def _gather(self, deadline: float, own: tuple[int, int]) -> Claim | None:
        """Waits for a hello of every other rank; returns what keeps the port for the job."""
        try:
            entrance = self._listen(own)
        except RendezvousError as failure:
            self._tell_latecomers(failure)
            raise
        logger.info("rank 0 listens at %s for %d other ranks", self._call.endpoint, self._call.world_size - 1)
        try:
            with contextlib.closing(_Door(self._call, entrance)) as door:
                try:
                    while len(self._guests) < self._call.world_size - 1:
                        left = deadline - time.monotonic()
                        if left <= 0:
                            raise RendezvousTimeoutError(self._missing(entrance))
                        for connection in door.knocking(min(left, wire.SLICE_SECONDS)):
                            self._admit(connection, door)
                except RendezvousError as failure:
                    self._tell(failure, door)
                    raise
        except BaseException:
            entrance.close()
            raise
        return entrance.withdraw()

    def _listen(self, own: tuple[int, int]) -> Entrance:
        give_up = time.monotonic() + min(_TAKEN_SECONDS, self._call.timeout)
        while True:
            try:
                return self._transport.listen()
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise RendezvousError(f"rank 0 cannot listen at {self._call.endpoint}: {error}") from None
                if time.monotonic() >= give_up:
                    self._confront(own)
                    raise RendezvousError(
                        f"endpoint {self._call.endpoint} is in use: {self._transport.holder()}. "
                        "Either two processes have rank 0, or two jobs use one endpoint at the same time: "
                        "give each job its own ip_port or SHMEM_UID_SESSION_ID"
                    ) from None
            time.sleep(wire.RETRY_SECONDS)

    def _confront(self, own: tuple[int, int]) -> None:
        """Where it is a rank 0 of this very job that listens already, goes to it: then it tells all that there are two.

        Raises:
            RendezvousError: what that one says.
        """
        rival = self._transport.rival()
        if rival is not None:
            connection, token = rival
            with connection, contextlib.suppress(OSError):
                wire.Hello.of(self._call, token, own).send(connection)
                wire.receive(connection, time.monotonic() + _GRACE_SECONDS)

    def _tell_latecomers(self, failure: RendezvousError) -> None:
        """Tells the other ranks, for a moment, that this one cannot listen."""
        listener = self._transport.listen_for_latecomers()
        if listener is not None:
            entrance = Entrance(listener, b"")
            with contextlib.closing(entrance), contextlib.closing(_Door(self._call, entrance)) as door:
                self._tell(failure, door)

    def _admit(self, connection: socket.socket, door: _Door) -> None:
        """Hears what a connection says; drops it unless that is a proper hello."""
        for rank, guest in self._guests.items():
            if guest.connection is connection:  # a guest says nothing more: it has ended
                del self._guests[rank]
                guest.close()
                raise RendezvousError(
                    f"{guest} ended before all {self._call.world_size} ranks had come to {self._call.endpoint}"
                )
        try:
            hello = wire.Hello.receive(connection)
        except wire.TooManyFilesError as error:
            failure = self._call.out_of_descriptors(error)
            door.tell(connection, failure)
            raise failure from None
        if hello is None:
            door.drop(connection)
            return
        if not door.entrance.admits(hello.token, hello.rank):
            hello.close()
            door.drop(connection)
            return
        guest = _Guest(connection, hello)
        try:
            self._compare(guest)
        except RendezvousError as failure:
            hello.close()
            door.tell(connection, failure)
            raise
        self._guests[hello.rank] = guest
        door.admit(connection)

    def _compare(self, guest: _Guest) -> None:
        """Raises RendezvousError unless rank 0 and the guest mean the same job."""
        call, hello = self._call, guest.hello
        if hello.version != wire.PROTOCOL_VERSION:
            raise RendezvousError(
                f"{guest} speaks version {hello.version} of the rendezvous, rank 0 version {wire.PROTOCOL_VERSION}: "
                "all ranks must run the same triton-dist"
            )
        if hello.world_size != call.world_size:
            raise RendezvousError(
                f"{guest} came to {call.endpoint} for a job of {hello.world_size} ranks, rank 0 (process "
                f"{os.getpid()}) for one of {call.world_size}: n_ranks must be equal on all ranks, and two jobs that "
                "run at the same time need two endpoints"
            )
        if hello.heap_bytes != call.heap_bytes:
            raise RendezvousError(
                f"{guest} wants a symmetric heap of {hello.heap_bytes} bytes, rank 0 one of {call.heap_bytes} bytes: "
                "local_mem_size must be equal on all ranks"
            )
        first = self._guests.get(hello.rank)
        if hello.rank == 0 or first is not None:
            pid = os.getpid() if first is None else first.hello.pid
            raise RendezvousError(
                f"two processes have rank {hello.rank} at {call.endpoint}: {pid} and {hello.pid}. "
                "Either my_rank is wrong in one of them, or two jobs use one endpoint at the same time"
            )

    def _missing(self, entrance: Entrance) -> str:
        call = self._call
        missing = [rank for rank in range(1, call.world_size) if rank not in self._guests]
        ranks = f"rank {missing[0]}" if len(missing) == 1 else f"ranks {', '.join(map(str, missing))}"
        refused = entrance.describe_refused()
        return (
            f"{ranks} of {call.world_size} did not come to {call.endpoint} within {call.timeout:g} s: "
            f"{f'{refused}; ' if refused else ''}{TIMEOUT_ADVICE}"
        )

    def _tell(self, failure: RendezvousError, door: _Door) -> None:
        """Tells every rank what failed, and for a moment also those that come late."""
        for guest in self._guests.values():
            guest.hello.close()  # room for those who come late, if descriptors were what failed
            door.tell(guest.connection, failure)
        until = time.monotonic() + _GRACE_SECONDS
        while door.told < self._call.world_size - 1 and (left := until - time.monotonic()) > 0:
            try:
                for connection in door.knocking(left):
                    self._tell_one(connection, failure, door)
            except RendezvousError:  # one failure is enough
                time.sleep(wire.RETRY_SECONDS)

    def _tell_one(self, connection: socket.socket, failure: RendezvousError, door: _Door) -> None:
        try:
            hello = wire.Hello.receive(connection)
        except wire.TooManyFilesError:
            door.tell(connection, failure)
            return
        if hello is None:
            door.drop(connection)
        else:
            # Its token counts as shown: that it ends now is no surprise.
            door.entrance.admits(hello.token, hello.rank)
            hello.close()
            door.tell(connection, failure)

    # -------------------------------------------------------------------------------------------- share

    def _share(self, own: tuple[int, int]) -> Meeting:
        """Hands everything to everyone, and waits until all have it."""
        call = self._call
        guests = [self._guests[rank] for rank in range(1, call.world_size)]
        pairs = [own, *(guest.hello.fds for guest in guests)]
        pids = [os.getpid(), *(guest.hello.pid for guest in guests)]
        fds: list[int] = []
        try:
            fds.append(os.memfd_create("triton-dist-status", os.MFD_CLOEXEC))
            os.ftruncate(fds[0], call.status_bytes)
            for fd in (*(segment for segment, _ in pairs), *(pidfd for _, pidfd in pairs)):
                fds.append(os.dup(fd))
        except OSError as error:
            close_all(fds)
            raise call.out_of_descriptors(error) from None
        try:
            self._distribute(guests, {"pids": pids, "descriptors": len(fds)}, fds)
        except BaseException:
            close_all(fds)
            raise
        return Meeting.of_descriptors(fds, pids)

    def _distribute(self, guests: list[_Guest], head: dict[str, Any], fds: list[int]) -> None:
        """Sends all guests the same, and hears from each whether it has taken it."""
        deadline = time.monotonic() + self._call.timeout
        failures: list[RendezvousError] = []
        for guest in guests:
            with self._noting(failures, guest):
                guest.connection.settimeout(max(wire.SLICE_SECONDS, deadline - time.monotonic()))
                wire.send(guest.connection, head)
                wire.send_descriptors(guest.connection, fds, deadline)
        # All are heard, also after a failure: a connection that is closed unheard would not tell the guest why.
        for guest in guests:
            with self._noting(failures, guest):
                # One that does not answer uses up the time of all; what the next have said lies there all the same.
                wire.receive(guest.connection, max(deadline, time.monotonic() + wire.SLICE_SECONDS))
        if failures:
            raise failures[0]

    @contextlib.contextmanager
    def _noting(self, failures: list[RendezvousError], guest: _Guest) -> Iterator[None]:
        try:
            yield
        except RendezvousError as failure:
            failures.append(failure)
        except TimeoutError:
            call = self._call
            silent = f"{guest} came to {call.endpoint}, but did not take the others' memory within {call.timeout:g} s"
            failures.append(RendezvousTimeoutError(f"{silent}: it is stopped, or too slow"))
        except OSError as error:
            lost = f"{guest} was lost while the ranks at {self._call.endpoint} exchanged their memory ({error})"
            failures.append(RendezvousError(lost))


class _Door:
    """An entrance and the connections of those who have not been told anything yet.

    Attributes:
        entrance: where they come in.
        told: how many were told of a failure.
    """

    def __init__(self, call: Call, entrance: Entrance) -> None:
        """The entrance stays somebody else's to close."""
        self.entrance = entrance
        self.told = 0
        self._call = call
        self._selector = selectors.DefaultSelector()
        self._strangers: dict[socket.socket, float] = {}
        entrance.listener.setblocking(False)
        self._selector.register(entrance.listener, selectors.EVENT_READ)
        if entrance.reception is not None:
            self._selector.register(entrance.reception, selectors.EVENT_READ)

    def close(self) -> None:
        """Closes what nobody else closes."""
        self._selector.close()
        for connection in self._strangers:
            connection.close()

    def knocking(self, seconds: float) -> Iterator[socket.socket]:
        """Connections that have something to say, or have ended; waits for them at most so long.

        Raises:
            RendezvousError: this process may not open more files, or a rank cannot be let in.
        """
        for key, _ in self._selector.select(seconds):
            if key.fileobj is self.entrance.listener:
                self._open()
            elif isinstance(key.fileobj, socket.socket):
                yield key.fileobj
        if self.entrance.reception is not None:
            self.entrance.reception.attend()
        oldest = time.monotonic() - _STRANGER_SECONDS
        for connection in [each for each, since in self._strangers.items() if since < oldest]:
            self.drop(connection)

    def _open(self) -> None:
        """Takes in whoever is there, but not other users."""
        try:
            connection, _ = self.entrance.listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise self._call.out_of_descriptors(error) from None
            return  # the other side has gone already
        uid = peer(connection)[1]
        if uid != os.geteuid():
            logger.warning("a process of user %d was turned away from %s", uid, self._call.endpoint)
            connection.close()
            return
        connection.setblocking(False)
        self._strangers[connection] = time.monotonic()
        self._selector.register(connection, selectors.EVENT_READ)

    def admit(self, connection: socket.socket) -> None:
        """It is somebody else's to close now; that it ends is still noticed here."""
        self._strangers.pop(connection, None)

    def tell(self, connection: socket.socket, failure: RendezvousError) -> None:
        """Tells it what failed, and has nothing more to do with it."""
        wire.send_failure(connection, failure)
        self.told += 1
        self.drop(connection)

    def drop(self, connection: socket.socket) -> None:
        """Closes it."""
        self._selector.unregister(connection)
        self._strangers.pop(connection, None)
        connection.close()
