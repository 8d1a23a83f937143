"""The process on a node: leases NPUs of its host, has torchrun's elastic agent start ranks on them, ends them.

It does what pytest tells it, and ends with everything that it has started when pytest is gone:

    {"do": "begin", …}                     ->  {"is": "here", "identity": …, "npus": 8}
    {"do": "gate"}                         ->  {"is": "gated"}: no other test on several nodes takes NPUs here
    {"do": "lease", "count": 2, …}         ->  {"is": "leased", "npus": [0, 1], "port": 20004}
    {"do": "open gate"}
    {"do": "start", "task": …, …}          ->  {"is": "started", "rank": 2, "pid": 4242}
                                               {"is": "rank", "rank": 2, "says": what a rank says of itself}
                                               {"is": "exited", "rank": 2, "status": wait status, "ended": false}
    {"do": "explain", "natively": …}       ->  {"is": "explained", "ranks": …, "hardware": …}
    {"do": "leave"}: the ranks may go
    {"do": "end", "suspect": …}            ->  {"is": "ended", "ranks": …}, with their output
    whatever cannot be done                ->  {"is": "failed", "text": …}
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
import os
import pickle
import select
import signal
import subprocess
import sys
import time
from typing import Any, NoReturn

from triton_dist import env
from triton_dist.testing.nodes import place
from triton_dist.testing.nodes.frames import Frames, Message
from triton_dist.testing.nodes.routes import interface_towards
from triton_dist.testing.ranks.processes import become_subreaper, children, end_descendants
from triton_dist.testing.ranks.wire import Channel, Listener, close_all, memory_file, read_text, readable

_LOOK = 0.05
# A rank that is gone while the elastic agent has not said how, after so many seconds: it left with exit status 0.
_TIME_FOR_STATUS = 1.0
_MOST_WORDS = 2000
_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class _OverError(Exception):
    """Nobody wants this node any more."""


class _Rank:
    """A rank of this node, from its first word on."""

    def __init__(self, rank: int, pid: int, channel: Channel, streams: tuple[int, int], stacks: int) -> None:
        from triton_dist.testing.ranks.record import RankRecord

        self.record = RankRecord(rank, pid=pid)
        self.channel = channel
        self.streams = streams
        self.stacks = stacks
        self.pidfd = os.pidfd_open(pid)
        self.mute = False
        self.gone_at: float | None = None


class Node:
    """The serving side."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._commands: list[Message] = []
        self._gate = contextlib.ExitStack()
        self._begun: Message = {}
        self._pool: Any = None
        self._lease: Any = None
        self._task: Any = None
        self._listener: Listener | None = None
        self._elastic: subprocess.Popen[bytes] | None = None
        self._report: int = -1
        self._log = memory_file("triton-dist-elastic")
        self._ranks: dict[int, _Rank] = {}

    def serve(self) -> None:
        """Returns when nobody wants the node any more, and none of its processes is left."""
        suspicion: str | None = "the pytest of its last test was lost"
        try:
            with contextlib.suppress(_OverError):
                while True:
                    command = self._next_command()
                    if command["do"] == "end":
                        suspicion = command["suspect"]
                        break
                    try:
                        self._obey(command)
                    except (OSError, RuntimeError, ValueError, ImportError) as error:
                        self._tell("failed", text=str(error))
        finally:
            self._end(suspicion)

    def _tell(self, what: str, **more: Any) -> None:
        self._frames.send({"is": what, **more})

    def _obey(self, command: Message) -> None:
        what = command["do"]
        if what == "begin":
            self._begin(command)
        elif what == "gate":
            from triton_dist.testing.leases.line import gate

            self._gate.enter_context(gate(self._pool.directory, self._check_wanted))
            self._tell("gated")
        elif what == "open gate":
            self._gate.close()
        elif what == "lease":
            self._lease = self._pool.acquire(command["count"], self._check_wanted, self._begun["test"])
            self._tell("leased", npus=list(self._lease.npus), port=self._lease.port)
        elif what == "start":
            self._start(command)
        elif what == "explain":
            self._explain(natively=command["natively"])
        elif what == "leave":
            for rank in self._ranks.values():
                rank.channel.send({"do": "leave"})

    # ----------------------------------------------------------------------------------- commands

    def _next_command(self) -> Message:
        """Waits for it, and does meanwhile what ranks ask for."""
        while not self._commands:
            self._take_news()
            self._commands += self._frames.receive()
            if self._frames.ended and not self._commands:
                raise _OverError
        return self._commands.pop(0)

    def _check_wanted(self) -> None:
        """Raises _OverError if the command that is being carried out has become pointless."""
        self._commands += self._frames.receive()
        if self._frames.ended or any(command["do"] == "end" for command in self._commands):
            raise _OverError

    def _begin(self, command: Message) -> None:
        self._begun = command
        env.apply(command["environ"])
        sys.path[:] = command["path"]
        try:
            os.chdir(command["directory"])
        except OSError as error:
            raise ValueError(
                f"{command['directory']} cannot be entered ({error.strerror}): the tests' files must have the same "
                "place on all hosts"
            ) from None
        from triton_dist.testing.choice import Wish, choose
        from triton_dist.testing.leases.directory import LeaseDirectory
        from triton_dist.testing.leases.pool import NpuPool

        chosen = choose(Wish.of(command["npus"]), allow_busy=command["allow_busy"])
        env.apply(chosen.environ)
        directory = LeaseDirectory.of_this_host()
        self._pool = NpuPool(chosen.inventory, directory, command["worker"])
        identity = f"{directory.identity()} {chosen.inventory.kind}"
        self._tell("here", identity=identity, npus=len(chosen.inventory.npus), place=place.own())

    def _start(self, command: Message) -> None:
        task = pickle.loads(base64.b64decode(command["task"]))
        environ = self._rank_environ(command)
        self._task = dataclasses.replace(task, environ=environ)
        self._listener = Listener()
        self._report, report = os.pipe2(os.O_CLOEXEC)
        host, count = command["address"], len(self._lease.npus)
        arguments = [
            f"--nnodes={command['nodes']}",
            f"--node-rank={command['number']}",
            f"--nproc-per-node={count}",
            "--rdzv-backend=static",
            f"--rdzv-endpoint={f'[{host}]' if ':' in host else host}:{command['port']}",
            f"--rdzv-id={command['session'][:8]}",
            "--max-restarts=0",
            # No folder for logs: ranks have their output elsewhere.
            f"--log-dir={os.devnull}",
            "-m",
            "triton_dist.testing.nodes.worker",
            self._listener.address,
        ]
        settings = {"report": report, "parent": os.getpid(), "arguments": arguments}
        try:
            self._elastic = subprocess.Popen(
                [sys.executable, "-m", "triton_dist.testing.nodes.elastic", json.dumps(settings)],
                # The agent has no use for an NPU. Ranks get `environ` before they import torch.
                env={**environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                pass_fds=[report],
                start_new_session=True,
            )
        finally:
            os.close(report)

    def _rank_environ(self, command: Message) -> dict[str, str]:
        address, port = command["address"], command["port"]
        defaults: dict[str, object] = {}
        if not env.OMP_NUM_THREADS.is_set():
            defaults["OMP_NUM_THREADS"] = 1
        if not env.GLOO_SOCKET_IFNAME.is_set() and (interface := interface_towards(address, port)) is not None:
            defaults["GLOO_SOCKET_IFNAME"] = interface
        npus = self._pool.inventory.environ(self._lease.npus)
        meeting = place.meeting(command["place"], command["session"])
        return env.child_environ(**defaults, **npus, **meeting)

    def _explain(self, *, natively: bool) -> None:
        from triton_dist.testing.hardware_report import hardware_texts
        from triton_dist.testing.ranks.inquiry import explain

        running = [rank for rank in self._ranks.values() if rank.record.status is None]
        explain([(rank.record, rank.channel) for rank in running], natively=natively)
        told = {
            rank.record.rank: {
                "stacks": rank.record.stacks,
                "waits": rank.record.waits,
                "native": rank.record.native,
            }
            for rank in running
        }
        pids = [rank.record.pid for rank in running if rank.record.pid is not None]
        self._tell("explained", ranks=told, hardware=hardware_texts(pids))

    # -------------------------------------------------------------------------------------- ranks

    def _take_news(self) -> None:
        """Waits a moment for news of pytest, ranks and the elastic agent, and takes in what there is of the latter."""
        poll = select.poll()
        poll.register(self._frames.source, select.POLLIN)
        if self._listener is not None:
            poll.register(self._listener.fileno(), select.POLLIN)
        if self._report >= 0:
            poll.register(self._report, select.POLLIN)
        for rank in self._ranks.values():
            if not rank.mute:
                poll.register(rank.channel.fileno(), select.POLLIN)
            if rank.gone_at is None:
                poll.register(rank.pidfd, select.POLLIN)
        ready = {fd for fd, _ in poll.poll(_LOOK * 1e3)}
        if self._listener is not None and self._listener.fileno() in ready:
            self._welcome()
        now = time.monotonic()
        for rank in self._ranks.values():
            if rank.channel.fileno() in ready:
                self._hear(rank)
            if rank.pidfd in ready:
                rank.gone_at = now
            if rank.gone_at is not None and now > rank.gone_at + _TIME_FOR_STATUS:
                self._exited(rank, 0, ended=False)
        if self._report in ready:
            self._hear_elastic()

    def _welcome(self) -> None:
        """Gives a rank that has come what it needs for its job."""
        assert self._listener is not None
        channel = self._listener.accept()
        if channel is None:
            return
        received = channel.receive()
        if received is None:
            channel.close()
            return
        number, pid = received[0]["rank"], received[0]["pid"]
        streams = (memory_file("triton-dist-stdout"), memory_file("triton-dist-stderr"))
        stacks = memory_file("triton-dist-stacks")
        task = memory_file("triton-dist-task", pickle.dumps(self._task))
        ours, theirs = Channel.pair()
        channel.send({"is": "job"}, [task, theirs.fileno(), *streams, stacks, *self._lease.fds])
        theirs.close()
        os.close(task)
        channel.close()
        self._ranks[number] = _Rank(number, pid, ours, streams, stacks)
        self._tell("started", rank=number, pid=pid)

    def _hear(self, rank: _Rank) -> None:
        received = rank.channel.receive()
        if received is None:
            rank.mute = True
            return
        message, _ = received
        if message["is"] == "stopped":
            # There is no terminal on a node.
            rank.channel.send({"do": "use terminal"})
            return
        rank.record.take(message)
        self._tell("rank", rank=rank.record.rank, says=message)

    def _exited(self, rank: _Rank, status: int, *, ended: bool) -> None:
        if rank.record.status is None:
            # What it said before comes first.
            while not rank.mute and readable([rank.channel], 0):
                self._hear(rank)
            rank.record.status, rank.record.ended_by_us = status, ended
            self._tell("exited", rank=rank.record.rank, status=status, ended=ended)

    def _hear_elastic(self) -> None:
        """The elastic agent has ended: takes in how its ranks did, and tells."""
        assert self._elastic is not None
        with os.fdopen(self._report, "rb") as report:
            os.set_blocking(report.fileno(), True)
            text = report.read()
        self._report = -1
        status = self._elastic.wait()
        if not text:
            how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with exit status {status}"
            words = read_text(self._log).strip()[-_MOST_WORDS:]
            self._tell("failed", text=f"torchrun's elastic agent {how}" + (f":\n{words}" if words else ""))
            return
        failures = {int(number): code for number, code in json.loads(text)["failures"].items()}
        for number, rank in self._ranks.items():
            code = failures.get(number)
            if code is not None:
                self._exited(rank, -code if code < 0 else code << 8, ended=False)
            else:
                # The agent ends the others where one has failed.
                self._exited(rank, 0, ended=bool(failures))
        if failures.keys() - self._ranks.keys():
            words = read_text(self._log).strip()[-_MOST_WORDS:]
            self._tell("failed", text=f"ranks ended before they came to the test:\n{words}")

    # ----------------------------------------------------------------------------------- at the end

    def _end(self, suspicion: str | None) -> None:
        """Ends every process of the node, gives its NPUs back, and tells what is left to tell."""
        for ending in _ENDING_SIGNALS:
            signal.signal(ending, signal.SIG_IGN)
        end_descendants(set(children()), lambda pid, status: None)
        if self._lease is not None:
            if suspicion is not None:
                self._lease.suspect(suspicion)
            self._lease.release()
        self._gate.close()
        told = {}
        for number, rank in self._ranks.items():
            while not rank.mute and readable([rank.channel], 0):
                self._hear(rank)
            told[number] = {
                "stdout": read_text(rank.streams[0]),
                "stderr": read_text(rank.streams[1]),
                "crash": read_text(rank.stacks),
            }
            close_all((*rank.streams, rank.stacks, rank.pidfd))
        self._tell("ended", ranks=told)


def main() -> NoReturn:
    """Serves over standard input and output, which nothing else gets."""
    source, target = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    # Whoever ends it, it ends what it has started first.
    for number in _ENDING_SIGNALS:
        signal.signal(number, _leave)
    become_subreaper()
    # How an end of the other side shows: by a failing write.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    Node(Frames(source, target)).serve()
    os._exit(0)


def _leave(*_: object) -> NoReturn:
    raise _OverError


if __name__ == "__main__":
    main()
