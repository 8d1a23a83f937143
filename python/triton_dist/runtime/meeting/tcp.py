"""Transport over a TCP address: rank 0 has a port, where the others learn the way to its UNIX socket."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import select
import socket
import time
from collections.abc import Callable
from typing import Any

import psutil

from triton_dist.runtime.meeting import handshake, reservation
from triton_dist.runtime.meeting.endpoint import Endpoint, resolve
from triton_dist.runtime.meeting.errors import RendezvousError
from triton_dist.runtime.meeting.handshake import NotOfThisProtocolError, Origin, Request, Verdict
from triton_dist.runtime.meeting.reception import TcpReception, describe_origins
from triton_dist.runtime.meeting.secret import JobSecret
from triton_dist.runtime.meeting.transport import AbstractSocket, Entrance, peer
from triton_dist.runtime.meeting.wire import RETRY_SECONDS, SLICE_SECONDS

# How long one attempt to reach rank 0 may take, in seconds.
_TRY_SECONDS = 5.0
# How long a rank tries again where its secret is not taken: the file may have been made anew just then.
_SECRET_SECONDS = 2.0
# How long a rank 0 may take to answer another.
_RIVAL_SECONDS = 1.0
_NO_TOKEN = bytes(handshake.TOKEN_BYTES)


class _NewsError(Exception):
    """Rank 0 cannot listen, and says so over this connection."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self.connection = connection


class TcpAddress:
    """Transport of one rank of a job that meets at an address."""

    has_port = True

    def __init__(self, endpoint: Endpoint, world_size: int) -> None:
        """Raises RendezvousError where the address stands for nothing on this host."""
        self._endpoint = endpoint
        self._world_size = world_size
        self._place = resolve(endpoint)
        self._secret = JobSecret(self._place.name)
        self._job = hashlib.sha256(endpoint.job.encode()).digest()[:16] if endpoint.job else bytes(16)
        self._news = AbstractSocket(f"rank 0 cannot listen at {self._place.name} {endpoint.job}")
        self._introduction: socket.socket | None = None
        self._symptom = ""
        self._secret_refused_at: float | None = None

    # ------------------------------------------------------------------------------------------- rank 0

    def listen(self) -> Entrance:
        if not self._place.is_of_this_host():
            raise RendezvousError(
                f"rank 0 cannot listen at {self._endpoint.name}: {self._place.not_of_this_host()}. "
                "Name an address of the host that rank 0 runs on"
            )
        self._secret.read()
        name = secrets.token_hex(16)
        listener = AbstractSocket(name).open()
        try:
            reception = TcpReception(
                self._place, self._endpoint.name, name.encode(), self._job, self._secret, self._world_size
            )
        except BaseException:
            listener.close()
            raise
        reservation.release(self._place)
        return Entrance(listener, _NO_TOKEN, reception)

    def listen_for_latecomers(self) -> socket.socket | None:
        try:
            return self._news.open()
        except OSError:
            return None

    def holder(self) -> str:
        holder = self._place.holder()
        with contextlib.suppress(OSError), AbstractSocket(holder).dial(SLICE_SECONDS) as connection:
            return f"process {peer(connection)[0]} is rank 0 of a job there"
        with contextlib.suppress(psutil.Error, OSError):
            for entry in psutil.net_connections("tcp"):
                if entry.status == psutil.CONN_LISTEN and self._is_this_port(entry.laddr) and entry.pid:
                    return f"process {entry.pid} ({psutil.Process(entry.pid).name()}) listens there"
        return "another program has that port"

    def rival(self) -> tuple[socket.socket, bytes] | None:
        if not self._endpoint.job:
            return None  # two jobs may have named one address
        try:
            return self._introduce(0, time.monotonic() + _RIVAL_SECONDS)
        except _NewsError as news:
            news.connection.close()
        except (OSError, NotOfThisProtocolError, RendezvousError):
            pass
        return None

    def _is_this_port(self, address: Any) -> bool:
        return bool(address) and address.port == self._place.address[1]

    # -------------------------------------------------------------------------------------- other ranks

    def connect(self, rank: int, timeout: float) -> tuple[socket.socket, bytes]:
        self._drop_introduction()
        try:
            return self._introduce(rank, time.monotonic() + min(timeout, _TRY_SECONDS))
        except _NewsError as news:
            return news.connection, _NO_TOKEN
        except (OSError, NotOfThisProtocolError) as error:
            self._drop_introduction()
            self._note(error)
            # Whoever listens there, it is not the rank 0 of this job: that one may have something to say.
            news_connection = self._hear_news()
            if news_connection is not None:
                return news_connection, _NO_TOKEN
            if isinstance(error, NotOfThisProtocolError):
                time.sleep(SLICE_SECONDS)  # it will not change soon
                raise ConnectionRefusedError(str(error)) from None
            raise

    def _introduce(self, rank: int, until: float) -> tuple[socket.socket, bytes]:
        connection = self._reach(until)
        greeting = self._receive(connection, handshake.GREETING_BYTES, until, handshake.check_greeting)
        secret = self._secret.read()
        origin = Origin.own()
        request = handshake.make_request(Request(self._job, rank, os.getpid(), origin), greeting, secret)
        connection.send(request)  # little enough for the send buffer of any new connection
        answer = self._receive(connection, handshake.ANSWER_BYTES, until)
        verdict, name = handshake.read_answer(answer, greeting, request, secret)
        if verdict is Verdict.WRONG_SECRET:
            self._count_refusal()
            raise NotOfThisProtocolError("does not take this rank's secret")
        if verdict is Verdict.OTHER_JOB:
            raise NotOfThisProtocolError("is rank 0 of another job, with another unique id")
        if verdict is not Verdict.WELCOME:
            raise RendezvousError(describe_origins(verdict, rank, os.getpid(), origin))
        left = max(RETRY_SECONDS, until - time.monotonic())
        return AbstractSocket(name.decode("ascii")).dial(left), handshake.token(greeting, request, secret)

    def _reach(self, until: float) -> socket.socket:
        """A connection to who listens at the address."""
        connection = self._place.new_socket()
        self._introduction = connection
        connection.setblocking(False)
        error = connection.connect_ex(self._place.address)
        if error == errno.EINPROGRESS:
            self._wait(connection, select.POLLOUT, until)
            error = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, os.strerror(error))
        if connection.getsockname() == connection.getpeername():
            # The system took the very port that nobody listens at as the port of this side.
            raise ConnectionRefusedError("connected to itself")
        return connection

    def _receive(
        self, connection: socket.socket, size: int, until: float, check: Callable[[bytes], None] | None = None
    ) -> bytes:
        """So many bytes; `check` sees those that are there each time."""
        said = b""
        while len(said) < size:
            self._wait(connection, select.POLLIN, until)
            heard = connection.recv(size - len(said))
            if not heard:
                raise NotOfThisProtocolError("closes the connection")
            said += heard
            if check is not None:
                check(said)
        return said

    def _wait(self, connection: socket.socket, event: int, until: float) -> None:
        """Waits until the connection is ready, or rank 0 says elsewhere that it cannot listen."""
        poll = select.poll()
        poll.register(connection, event)
        while not poll.poll(SLICE_SECONDS * 1000):
            news_connection = self._hear_news()
            if news_connection is not None:
                self._drop_introduction()
                raise _NewsError(news_connection)
            if time.monotonic() >= until:
                raise NotOfThisProtocolError("does not answer")

    def _hear_news(self) -> socket.socket | None:
        """A connection to a rank 0 of this job that cannot listen at the address; None where there is none."""
        try:
            connection = self._news.dial(SLICE_SECONDS)
        except OSError:
            return None
        if peer(connection)[1] == os.geteuid():
            return connection
        connection.close()
        return None

    def _count_refusal(self) -> None:
        now = time.monotonic()
        if self._secret_refused_at is None:
            self._secret_refused_at = now
        if now - self._secret_refused_at < _SECRET_SECONDS:
            return
        advice = (
            "TRITON_DIST_JOB_SECRET must be the same on all ranks"
            if self._secret.is_given
            else "where ranks run as different users, with different XDG_RUNTIME_DIR or on different hosts, set "
            "TRITON_DIST_JOB_SECRET to the same text on all"
        )
        raise RendezvousError(
            f"rank 0 at {self._endpoint.name} does not take this rank's secret: {advice}. "
            "Or another job listens there: then choose another address"
        )

    def _note(self, error: Exception) -> None:
        if isinstance(error, NotOfThisProtocolError):
            self._symptom = f"who listens at {self._place.name} {error}"
        elif isinstance(error, ConnectionRefusedError):
            self._symptom = ""
        else:
            self._symptom = str(error)

    def why_not(self) -> str:
        parts = [self._symptom] if self._symptom else []
        with contextlib.suppress(OSError), AbstractSocket(self._place.holder()).dial(SLICE_SECONDS) as connection:
            parts.append(f"process {peer(connection)[0]} is rank 0 of a job that has met there already")
        if not self._place.is_of_this_host():
            parts.append(
                f"{self._place.not_of_this_host()}, and simulated NPUs share the memory of one host: all ranks must "
                "run on the host of that address"
            )
        return "; ".join(parts)

    def close(self) -> None:
        self._drop_introduction()
        self._secret.discard()

    def _drop_introduction(self) -> None:
        if self._introduction is not None:
            self._introduction.close()
            self._introduction = None
