"""One test's ranks, from the fork to the last of their processes gone."""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from triton_dist.testing.leases.pool import Lease
from triton_dist.testing.ranks.client import ZygoteClient
from triton_dist.testing.ranks.rank import STACKS_SIGNAL, Descriptors
from triton_dist.testing.ranks.task import Task
from triton_dist.testing.ranks.wire import MOST_DESCRIPTORS, Channel, Message, close_all, memory_file, read_all

# After the first failure, in seconds: ranks that fail on their own account at the same time may still say so.
_TIME_TO_FAIL_TOO = 0.1
# For the answers of ranks that have run out of time, and for faulthandler where an answer does not come.
_TIME_TO_EXPLAIN = 1.0
_TIME_FOR_FAULTHANDLER = 0.2
# How often `while_waiting` is called.
_LOOK = 0.1
# Task, channel, standard output and error, stacks.
_DESCRIPTORS_OF_A_RANK = 5
MOST_RANKS = MOST_DESCRIPTORS - _DESCRIPTORS_OF_A_RANK


@dataclass
class RankRecord:
    """What is known of one rank.

    Attributes:
        rank: its number.
        pid: its process; None if it was never started.
        kind: "returned", "skipped", "xfailed" or "failed" once its worker function has ended, else None.
        at: when that was, on the monotonic clock, in seconds.
        summary: the reason of a skip or xfail, the error of a failure in a line.
        text: the traceback of a failure.
        status: the wait status of its process; None as long as it runs.
        ended_by_us: whether it was running when the job was ended.
        stacks: Python stacks at the time-out; None if it did not answer.
        waits: what its programs waited for at the time-out.
        stdout, stderr: captured output.
        crash: what faulthandler wrote.
    """

    rank: int
    pid: int | None = None
    kind: str | None = None
    at: float = 0.0
    summary: str = ""
    text: str = ""
    status: int | None = None
    ended_by_us: bool = False
    stacks: str | None = None
    waits: list[dict[str, Any]] = field(default_factory=list)
    stdout: str = ""
    stderr: str = ""
    crash: str = ""

    @property
    def signal(self) -> signal.Signals | None:
        """The signal that ended the process, if one of the rank's own did."""
        if self.status is None or self.ended_by_us or not os.WIFSIGNALED(self.status):
            return None
        return signal.Signals(os.WTERMSIG(self.status))

    @property
    def failed(self) -> bool:
        if self.kind in ("failed", "xfailed"):
            return True
        return self.status is not None and not self.ended_by_us and self.status != 0

    @property
    def done(self) -> bool:
        """Whether nothing more is expected of its worker function."""
        return self.kind in ("returned", "skipped") or self.status is not None


@dataclass
class JobRecord:
    """What became of a job.

    Attributes:
        ranks: one record a rank.
        timeout: the time-out that it ran into, in seconds; None if it did not.
        broken: why the job could not be carried on, apart from its ranks; None if it could.
    """

    ranks: list[RankRecord]
    timeout: float | None = None
    broken: str | None = None


class Job:
    """Ranks that run one task on one lease.

    Attributes:
        record: what became of it so far; complete after `run`.
    """

    def __init__(self, zygote: ZygoteClient, lease: Lease, task: Task, *, captured: bool) -> None:
        """`captured`: keep the ranks' output in the record, instead of writing it where pytest's own goes."""
        self.record = JobRecord([RankRecord(rank) for rank in range(task.world_size)])
        self._zygote = zygote
        self._lease = lease
        self._task = task
        self._captured = captured
        self._channels: list[Channel] = []
        self._streams: list[tuple[int, int]] = []
        self._stacks: list[int] = []

    def run(self, timeout: float, while_waiting: Callable[[], None] = lambda: None) -> None:
        """Starts the ranks and returns when no process of the job is left; then `record` is complete.

        Args:
            timeout: how long the ranks may take, in seconds from the beginning of the lease.
            while_waiting: called now and then; what it raises ends the job.

        Raises:
            ZygoteError: processes are left that cannot be ended.
        """
        try:
            self._start()
            self._watch(timeout, while_waiting)
        finally:
            self._end()

    def _start(self) -> None:
        task = memory_file("triton-dist-task", pickle.dumps(self._task))
        try:
            for record in self.record.ranks:
                ours, theirs = Channel.pair()
                self._channels.append(ours)
                self._stacks.append(memory_file("triton-dist-stacks"))
                if self._captured:
                    self._streams.append((memory_file("triton-dist-stdout"), memory_file("triton-dist-stderr")))
                    stdout, stderr = self._streams[-1]
                else:
                    stdout, stderr = 1, 2
                fds = Descriptors(task, theirs.fileno(), stdout, stderr, self._stacks[-1], self._lease.fds)
                self._zygote.fork(record.rank, fds.to_list())
                theirs.close()
        finally:
            os.close(task)

    # ---------------------------------------------------------------------------- while ranks run

    def _watch(self, timeout: float, while_waiting: Callable[[], None]) -> None:
        """Returns when all ranks have exited, or the job is to be ended."""
        deadline = self._lease.since + timeout
        leaving = False
        failed_at: float | None = None
        while any(record.status is None for record in self.record.ranks):
            now = time.monotonic()
            if self.record.broken is not None:
                return
            if failed_at is None and any(record.failed for record in self.record.ranks):
                failed_at = now
            if failed_at is not None and now >= failed_at + _TIME_TO_FAIL_TOO:
                return
            if now >= deadline:
                self.record.timeout = timeout
                self._explain()
                return
            if not leaving and all(record.done for record in self.record.ranks):
                leaving = True
                self._tell_all("leave")
            limit = deadline if failed_at is None else failed_at + _TIME_TO_FAIL_TOO
            self._take_news(min(_LOOK, limit - now))
            while_waiting()

    def _tell_all(self, what: str) -> None:
        for record in self.record.ranks:
            if record.status is None:
                self._channels[record.rank].send({"do": what})

    def _take_news(self, patience: float) -> None:
        """Waits up to `patience` seconds for messages, and takes in those that are there."""
        running = [r.rank for r in self.record.ranks if r.status is None]
        sources = [self._zygote.channel, *(self._channels[rank] for rank in running)]
        ready, _, _ = select.select(sources, [], [], max(0.0, patience))
        for rank in running:
            if self._channels[rank] in ready:
                self._hear_rank(rank)
        if self._zygote.channel in ready:
            message = self._zygote.receive()
            if message is None:
                self.record.broken = self._zygote.describe_end()
            else:
                self._hear_zygote(message)

    def _hear_zygote(self, message: Message) -> None:
        record = self.record.ranks[message["rank"]]
        if message["is"] == "forked":
            record.pid = message["pid"]
        else:
            # What it said before it exited comes first.
            while select.select([self._channels[record.rank]], [], [], 0)[0]:
                if not self._hear_rank(record.rank):
                    break
            record.status = message["status"]

    def _hear_rank(self, rank: int) -> bool:
        """Takes in a message of `rank`; False if there will be no more."""
        received = self._channels[rank].receive()
        if received is None:
            return False
        message, _ = received
        record = self.record.ranks[rank]
        if message["is"] == "outcome":
            record.kind, record.at = message["kind"], message["at"]
            record.summary, record.text = message.get("summary", ""), message.get("text", "")
        else:
            record.stacks, record.waits = message["stacks"], message["waits"]
        return True

    def _explain(self) -> None:
        """Asks the ranks that still run where they are and what they wait for."""
        self._tell_all("explain")
        deadline = time.monotonic() + _TIME_TO_EXPLAIN
        while (silent := self._silent_ranks()) and (left := deadline - time.monotonic()) > 0:
            self._take_news(left)
        for record in silent:
            if record.pid is not None:
                os.kill(record.pid, STACKS_SIGNAL)
        if silent:
            time.sleep(_TIME_FOR_FAULTHANDLER)

    def _silent_ranks(self) -> list[RankRecord]:
        if self.record.broken is not None:
            return []
        return [r for r in self.record.ranks if r.status is None and r.stacks is None]

    # -------------------------------------------------------------------------------- at the end

    def _end(self) -> None:
        for record in self.record.ranks:
            record.ended_by_us = record.status is None
        try:
            self._zygote.end_job(self._hear_zygote)
        finally:
            self._collect_output()
            for channel in self._channels:
                channel.close()

    def _collect_output(self) -> None:
        for record, stacks in zip(self.record.ranks, self._stacks, strict=False):
            record.crash = read_all(stacks).decode(errors="replace")
        for record, (stdout, stderr) in zip(self.record.ranks, self._streams, strict=False):
            record.stdout = read_all(stdout).decode(errors="replace")
            record.stderr = read_all(stderr).decode(errors="replace")
            close_all((stdout, stderr))
        close_all(self._stacks)
