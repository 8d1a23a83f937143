"""Rank 0's TCP port: hears who comes, and sends those that know the secret of the job on to its UNIX socket.

Anybody may connect. A stranger can say little (one request of fixed size), not for long, and is one of few: the oldest
goes when there are too many. Nothing here waits, so nobody can keep the ranks from meeting.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import selectors
import socket
import struct
import time
from collections import Counter, OrderedDict

from triton_dist.runtime.meeting import handshake
from triton_dist.runtime.meeting.endpoint import Place
from triton_dist.runtime.meeting.errors import RendezvousError
from triton_dist.runtime.meeting.handshake import Origin, Request, Verdict
from triton_dist.runtime.meeting.secret import JobSecret
from triton_dist.runtime.meeting.transport import AbstractSocket, Claim

logger = logging.getLogger("aclshmem.rendezvous")

# How long a stranger may take for its request, in seconds, and how many there may be at a time.
_STRANGER_SECONDS = 5.0
_STRANGERS_MOST = 256
_BACKLOG = 1024
# How many connections are taken in before those that have come are heard.
_ACCEPTS_AT_ONCE = 64
# How many kinds of refusals are told.
_REFUSALS_MOST = 3


class _Stranger:
    """A connection that has not yet made its request."""

    def __init__(self, connection: socket.socket, name: str) -> None:
        self.connection = connection
        self.name = name
        self.greeting = handshake.new_greeting()
        self.said = b""
        self.until = time.monotonic() + _STRANGER_SECONDS


class _Guest:
    """A connection of a rank that knows the secret.

    Attributes:
        connection: the connection over which it came.
        request: what it said.
        token: what it shows at the UNIX socket; b"" once it has.
    """

    def __init__(self, connection: socket.socket, request: Request, token: bytes) -> None:
        self.connection = connection
        self.request = request
        self.token = token


class TcpReception:
    """The port of a rank 0."""

    def __init__(
        self, place: Place, endpoint: str, name: bytes, job: bytes, secret: JobSecret, world_size: int
    ) -> None:
        """Listens at `place` and sends the ranks of `job` to the UNIX socket that is called `name`.

        `endpoint` is what messages call the place.

        Raises:
            OSError: it cannot listen there.
        """
        self._endpoint = endpoint
        self._name = name
        self._job = job
        self._secret = secret
        self._world_size = world_size
        self._origin = Origin.own()
        self._refused: Counter[str] = Counter()
        self._strangers: OrderedDict[socket.socket, _Stranger] = OrderedDict()
        self._guests: dict[socket.socket, _Guest] = {}
        self._selector = selectors.DefaultSelector()
        self._listener = place.new_socket()
        self._claim = AbstractSocket(place.holder()).claim()
        try:
            # Connections of an earlier job that linger in TIME_WAIT do not count.
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listener.bind(place.address)
            self._listener.listen(_BACKLOG)
            self._listener.setblocking(False)
            self._selector.register(self._listener, selectors.EVENT_READ)
        except BaseException:
            self._listener.close()
            self._selector.close()
            self._claim.close()
            raise

    def fileno(self) -> int:
        return self._selector.fileno()

    def attend(self) -> None:
        for key, _ in self._selector.select(0):
            connection = key.fileobj
            assert isinstance(connection, socket.socket)
            if connection is self._listener:
                self._take_in()
            elif connection in self._strangers:
                self._hear(self._strangers[connection])
            elif connection in self._guests:
                self._hear_guest(self._guests[connection])
        now = time.monotonic()
        for stranger in [s for s in self._strangers.values() if s.until <= now]:
            self._refuse(stranger, "said nothing that a rank says" if stranger.said else "said nothing")

    def _take_in(self) -> None:
        for _ in range(_ACCEPTS_AT_ONCE):
            try:
                connection, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    continue  # the other side has gone already
                if not self._strangers:
                    raise RendezvousError(
                        f"rank 0 may not open another file to hear the other ranks ({error}): raise the limit with "
                        "ulimit -n"
                    ) from None
                self._refuse(next(iter(self._strangers.values())), "made room for others")
                return
            if len(self._strangers) >= max(_STRANGERS_MOST, 2 * self._world_size):
                self._refuse(next(iter(self._strangers.values())), "made room for others")
            connection.setblocking(False)
            stranger = _Stranger(connection, str(address[0]))
            self._strangers[connection] = stranger
            self._selector.register(connection, selectors.EVENT_READ)
            try:
                connection.send(stranger.greeting)
            except OSError:
                self._forget(stranger)

    def _hear(self, stranger: _Stranger) -> None:
        try:
            heard = stranger.connection.recv(handshake.REQUEST_BYTES - len(stranger.said))
        except BlockingIOError:
            return
        except OSError:
            heard = b""
        stranger.said += heard
        if not heard:
            # One that looks whether anybody listens, or has found this out.
            logger.debug("connection from %s ended before its request", stranger.name)
            self._forget(stranger)
        elif not handshake.begins_a_request(stranger.said):
            self._refuse(stranger, "is no rank of this release, or none at all")
        elif len(stranger.said) == handshake.REQUEST_BYTES:
            self._answer(stranger)

    def _answer(self, stranger: _Stranger) -> None:
        secret = self._secret.read()
        request = handshake.read_request(stranger.said)
        if not handshake.is_proven(stranger.said, stranger.greeting, secret):
            self._say(stranger, Verdict.WRONG_SECRET, secret)
            self._refuse(stranger, "does not prove that it knows the secret of this job")
            return
        if request.job != self._job:
            self._say(stranger, Verdict.OTHER_JOB, secret)
            self._refuse(stranger, "is of another job, with another unique id")
            return
        verdict = compare(self._origin, request.origin)
        self._say(stranger, verdict, secret)
        if verdict is not Verdict.WELCOME:
            self._refuse(stranger, "cannot share memory")
            raise RendezvousError(describe_origins(verdict, request.rank, request.pid, request.origin))
        logger.debug("rank %d (process %d) has come from %s", request.rank, request.pid, stranger.name)
        del self._strangers[stranger.connection]
        token = handshake.token(stranger.greeting, stranger.said, secret)
        self._guests[stranger.connection] = _Guest(stranger.connection, request, token)

    def _say(self, stranger: _Stranger, verdict: Verdict, secret: bytes) -> None:
        answer = handshake.make_answer(verdict, self._name, stranger.greeting, stranger.said, secret)
        with contextlib.suppress(OSError):  # that it has gone is seen where it is listened to
            stranger.connection.send(answer)

    def _hear_guest(self, guest: _Guest) -> None:
        """A guest says nothing more here: it has closed the connection, or ended."""
        self._selector.unregister(guest.connection)
        guest.connection.close()
        del self._guests[guest.connection]
        if guest.token:
            raise RendezvousError(
                f"rank {guest.request.rank} (process {guest.request.pid}) ended before all {self._world_size} ranks "
                f"had come to {self._endpoint}"
            )

    def admits(self, token: bytes, rank: int) -> bool:
        for guest in self._guests.values():
            if guest.token and guest.request.rank == rank and handshake.equal(token, guest.token):
                guest.token = b""
                return True
        logger.warning("somebody without the token of rank %d was turned away from the UNIX socket", rank)
        return False

    def _refuse(self, stranger: _Stranger, why: str) -> None:
        logger.warning("connection from %s refused: it %s", stranger.name, why)
        self._refused[f"{stranger.name} {why}"] += 1
        if len(self._refused) > 100:
            del self._refused[min(self._refused, key=lambda kind: self._refused[kind])]
        self._forget(stranger)

    def _forget(self, stranger: _Stranger) -> None:
        del self._strangers[stranger.connection]
        self._selector.unregister(stranger.connection)
        stranger.connection.close()

    def describe_refused(self) -> str:
        told = [
            f"{kind} ({count} {'time' if count == 1 else 'times'})"
            for kind, count in self._refused.most_common(_REFUSALS_MOST)
        ]
        return f"connections were refused: {', '.join(told)}" if told else ""

    def close(self) -> None:
        self._close_connections()
        self._listener.close()
        self._claim.close()

    def withdraw(self) -> Claim:
        self._close_connections()
        # It keeps its address and no longer listens. Another rank 0 that allows the reuse of the address fails when it
        # begins to listen, since this socket does not allow it any more.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        return Claim(self._listener, self._claim)

    def _close_connections(self) -> None:
        self._selector.close()
        for guest in self._guests.values():
            # Reset instead of closed: both sides are done, and nothing shall linger at the port.
            guest.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            guest.connection.close()
        for stranger in self._strangers.values():
            stranger.connection.close()
        self._guests.clear()
        self._strangers.clear()


def compare(own: Origin, theirs: Origin) -> Verdict:
    """Whether processes from these two can share memory."""
    if theirs.host != own.host:
        return Verdict.OTHER_HOST
    if theirs.namespace != own.namespace:
        return Verdict.OTHER_NAMESPACE
    if theirs.uid != own.uid:
        return Verdict.OTHER_USER
    return Verdict.WELCOME


def describe_origins(verdict: Verdict, rank: int, pid: int, theirs: Origin) -> str:
    """Why rank `rank`, which runs at `theirs`, cannot share memory with rank 0."""
    who = f"rank {rank} (process {pid})"
    if verdict is Verdict.OTHER_USER:
        return f"{who} runs as user {theirs.uid}, rank 0 as another: all ranks of a job must run as one user"
    if verdict is Verdict.OTHER_NAMESPACE:
        where = "in another network namespace (another container, say) than rank 0"
    else:
        where = "on another host than rank 0"
    return f"{who} runs {where}: simulated NPUs share the memory of one host, so all ranks must run in the same place"
