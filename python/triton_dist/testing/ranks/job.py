"""One test's ranks, from the fork to the last of their processes gone."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable
from typing import Protocol

from triton_dist.testing.hardware_report import hardware_texts
from triton_dist.testing.leases.pool import Lease
from triton_dist.testing.ranks.client import ZygoteClient
from triton_dist.testing.ranks.inquiry import explain
from triton_dist.testing.ranks.rank import Descriptors
from triton_dist.testing.ranks.record import JobRecord, RankRecord
from triton_dist.testing.ranks.task import Task, lasting_key
from triton_dist.testing.ranks.wire import (
    MOST_DESCRIPTORS,
    Channel,
    Message,
    close_all,
    memory_file,
    read_text,
    readable,
)

# After the first failure, in seconds: ranks that fail on their own account at the same time may still say so.
TIME_TO_FAIL_TOO = 0.25
# How often `while_waiting` is called.
_LOOK = 0.1
# Task, channel, standard output and error, stacks.
_DESCRIPTORS_OF_A_RANK = 5
MOST_RANKS = MOST_DESCRIPTORS - _DESCRIPTORS_OF_A_RANK


class Terminal(Protocol):
    """pytest's terminal, for ranks that stop in a debugger."""

    def lend(self, record: RankRecord, world_size: int) -> tuple[int, int]:
        """Descriptors to read from and to write to; says there which rank has stopped, and why."""

    def take_back(self) -> None:
        """Ends the loan; once is enough, more does no harm."""


class Job:
    """Ranks that run one task on one lease.

    Attributes:
        record: what became of it so far; complete after `run`.
    """

    def __init__(
        self,
        zygote: ZygoteClient,
        lease: Lease,
        task: Task,
        *,
        captured: bool,
        warm: bool,
        bound: bool = False,
        terminal: Terminal | None = None,
        native_stacks: bool = False,
    ) -> None:
        """Args:
        captured: keep the ranks' output in the record, instead of writing it where pytest's own goes.
        warm: take ranks that other tests have had, and leave them to others again.
        bound: a rank cannot have other NPUs afterwards, as on real ones.
        terminal: lent to a rank that stops in a debugger; None if pytest has none.
        native_stacks: at a time-out, have a debugger tell them.
        """
        self.record = JobRecord([RankRecord(rank) for rank in range(task.world_size)])
        self._zygote = zygote
        self._lease = lease
        self._task = task
        self._captured = captured
        self._warm = warm
        self._npus = lease.npus if bound else ()
        self._terminal = terminal
        self._native_stacks = native_stacks
        self._number = zygote.new_job()
        self._channels: list[Channel] = []
        self._streams: list[tuple[int, int]] = []
        self._stacks: list[int] = []
        # Ranks that closed their end of the channel, which they may do long before they exit.
        self._mute: set[int] = set()

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
        key = lasting_key(self._task.environ)
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
                self._zygote.start_rank(self._number, record.rank, key, fds.to_list(), keep=self._warm, npus=self._npus)
                theirs.close()
                # One after the other: the kernel limits how many descriptors of a user may be under way.
                while record.pid is None and self.record.broken is None:
                    self._take_news(_LOOK)
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
            if any(record.stopped is not None for record in self.record.ranks):
                # The user's time does not count.
                deadline, failed_at = max(deadline, now + timeout), None
                self._take_news(_LOOK)
                while_waiting()
                continue
            if self.record.broken is not None:
                return
            if failed_at is None and any(record.failed for record in self.record.ranks):
                failed_at = now
            if failed_at is not None and now >= failed_at + TIME_TO_FAIL_TOO:
                return
            if now >= deadline:
                self.record.timeout = timeout
                running = [r for r in self.record.ranks if r.status is None and r.pid is not None]
                explain([(r, self._channels[r.rank]) for r in running], natively=self._native_stacks)
                self.record.hardware = hardware_texts([r.pid for r in running if r.pid is not None])
                return
            if not leaving and all(record.done for record in self.record.ranks):
                leaving = True
                self._tell_all("leave")
            limit = deadline if failed_at is None else failed_at + TIME_TO_FAIL_TOO
            self._take_news(min(_LOOK, limit - now))
            while_waiting()

    def _tell_all(self, what: str) -> None:
        for record in self.record.ranks:
            if record.status is None:
                self._channels[record.rank].send({"do": what})

    def _take_news(self, patience: float) -> None:
        """Waits up to `patience` seconds for messages, and takes in those that are there."""
        # Ranks that are still to be started have no channel yet.
        running = [r.rank for r in self.record.ranks[: len(self._channels)] if r.status is None]
        sources = [self._zygote.channel, *(self._channels[rank] for rank in running if rank not in self._mute)]
        ready = readable(sources, patience)
        for rank in running:
            if self._channels[rank] in ready:
                self._hear_rank(rank)
        if self._zygote.channel in ready:
            message = self._zygote.receive()
            if message is None:
                self.record.broken = self._zygote.describe_end()
            elif message["job"] == self._number:
                self._hear_zygote(message)

    def _hear_zygote(self, message: Message) -> None:
        record = self.record.ranks[message["rank"]]
        if message["is"] == "started":
            record.pid, record.reused = message["pid"], message["reused"]
        else:
            # What it said before it exited comes first.
            while record.rank not in self._mute and readable([self._channels[record.rank]], 0):
                self._hear_rank(record.rank)
            record.status, record.ended_by_us = message["status"], message["ended"]

    def _hear_rank(self, rank: int) -> None:
        received = self._channels[rank].receive()
        if received is None:
            self._mute.add(rank)
            return
        record = self.record.ranks[rank]
        record.take(received[0])
        if self._terminal is None:
            if record.stopped is not None:
                self._channels[rank].send({"do": "use terminal"})
        elif record.stopped is not None:
            self._channels[rank].send({"do": "use terminal"}, self._terminal.lend(record, len(self.record.ranks)))
        elif record.debugged:
            self._terminal.take_back()

    # -------------------------------------------------------------------------------- at the end

    def _end(self) -> None:
        try:
            self._zygote.end_job(self._number, self._hear_zygote)
        except BaseException:
            # Whatever it was doing: it ends its ranks, or the kernel does, and the next test gets another.
            self._zygote.give_up()
            raise
        finally:
            for record in self.record.ranks:
                # Ended with the zygote, which cannot tell.
                record.ended_by_us |= record.status is None
            if self._terminal is not None:
                self._terminal.take_back()
            self._collect_output()
            for channel in self._channels:
                channel.close()

    def _collect_output(self) -> None:
        for record, stacks in zip(self.record.ranks, self._stacks, strict=False):
            record.crash = read_text(stacks)
        for record, (stdout, stderr) in zip(self.record.ranks, self._streams, strict=False):
            record.stdout = read_text(stdout)
            record.stderr = read_text(stderr)
            close_all((stdout, stderr))
        close_all(self._stacks)
