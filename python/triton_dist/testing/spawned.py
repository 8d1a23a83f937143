"""Suites that start their ranks themselves: torch.multiprocessing gets a lease, and an end, for them.

The usual conftest.py defines `dist_test` with `torch.multiprocessing.spawn`, and hard-codes ports. While such a test
runs, that function takes NPUs for the processes first and gives them a session and a port of their own, which win
over what the suite's code names.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import wraps
from multiprocessing import connection
from typing import TYPE_CHECKING, Any

from triton_dist import env
from triton_dist.testing.hardware_report import hardware_texts
from triton_dist.testing.options import timeout_of
from triton_dist.testing.ranks.adopted import AdoptedWorker, Descriptor
from triton_dist.testing.ranks.client import ZygoteError
from triton_dist.testing.ranks.inquiry import explain
from triton_dist.testing.ranks.quick_spawn import QuickSpawn
from triton_dist.testing.ranks.record import JobRecord, RankRecord
from triton_dist.testing.ranks.wire import Channel, close_all, memory_file, read_text
from triton_dist.testing.report import RanksTimedOut, timeout_error
from triton_dist.testing.usage import record_use

if TYPE_CHECKING:
    import pytest

    from triton_dist.testing.leases.pool import Lease
    from triton_dist.testing.session import DistSession

# How long children of ranks may take to leave by themselves, in seconds.
_TIME_TO_LEAVE = 0.3


class SpawnedRanks:
    """The ranks that one test starts itself."""

    def __init__(self, item: pytest.Item, session: DistSession) -> None:
        self._item = item
        self._session = session
        self._jobs: list[_SpawnedJob] = []

    @contextmanager
    def leased(self) -> Iterator[None]:
        """While entered, ranks started through torch.multiprocessing have a lease; none are left afterwards."""
        try:
            package: Any = importlib.import_module("torch.multiprocessing")
            # Not by attribute: the package has a function of this name.
            module: Any = importlib.import_module("torch.multiprocessing.spawn")
        except ImportError:
            # It is for the test to say so, if it wants torch at all.
            yield
            return
        original = module.start_processes
        module.start_processes = package.start_processes = self._replacement(original)
        try:
            yield
        finally:
            module.start_processes = package.start_processes = original
            self.end()

    def end(self) -> None:
        """Ends what is left of the ranks and gives their leases back; once is enough, more does no harm."""
        for job in self._jobs:
            job.end()

    def timeout_error(self) -> RanksTimedOut | None:
        """What to raise if ranks of the test have run out of time."""
        return next(filter(None, (timeout_error(job.record) for job in self._jobs)), None)

    def _replacement(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def start_processes(
            fn: Callable[..., object],
            args: tuple[object, ...] = (),
            nprocs: int = 1,
            join: bool = True,
            daemon: bool = False,
            start_method: str = "spawn",
        ) -> Any:
            __tracebackhide__ = True
            if nprocs < 1:
                return original(fn, args, nprocs, join, daemon, start_method)
            # First, for the time that it takes is not to be the lease's.
            quick = self._quick_spawn() if start_method == "spawn" else None
            lease = self._session.pool.acquire(nprocs, self._while_waiting, self._item.name)
            job = _SpawnedJob(self._item, lease, quick)
            self._jobs.append(job)
            with (
                _environment({**self._session.pool.inventory.environ(lease.npus), **lease.environ()}),
                _nothing_left(),
                quick.in_place() if quick is not None else nullcontext(),
            ):
                context = original(job.worker(fn), args, nprocs, False, daemon, start_method)
            job.watch(context, timeout_of(self._item))
            if not join:
                return context
            try:
                while not context.join():
                    pass
            finally:
                job.end()
            return None

        return start_processes

    def _quick_spawn(self) -> QuickSpawn | None:
        """A quick way to spawn ranks; None where it is not wanted, or not known to be safe, as on real NPUs."""
        if not self._session.forks_spawned:
            return None
        try:
            return QuickSpawn(self._session.ready_zygote())
        except ZygoteError:
            return None

    def _while_waiting(self) -> None:
        self._session.check_parent()
        # Ranks of this very test may have the NPUs that more of its ranks wait for.
        error = self.timeout_error()
        if error is not None:
            raise error


class _SpawnedJob:
    """The processes of one call, on one lease.

    Attributes:
        record: what became of them; only kept for a time-out.
    """

    def __init__(self, item: pytest.Item, lease: Lease, quick: QuickSpawn | None) -> None:
        """`quick`: what starts the processes; None for multiprocessing's own way."""
        self.record = JobRecord([RankRecord(rank) for rank in range(len(lease.npus))])
        self._item = item
        self._lease = lease
        self._stacks = [memory_file("triton-dist-stacks") for _ in self.record.ranks]
        self._channels: list[Channel] = []
        self._theirs: list[Channel] = []
        for _ in self.record.ranks:
            ours, theirs = Channel.pair()
            self._channels.append(ours)
            self._theirs.append(theirs)
        self._quick = quick
        self._context: Any = None
        self._over = threading.Event()
        self._watchdog: threading.Thread | None = None

    def worker(self, function: Callable[..., object]) -> AdoptedWorker:
        """What the processes are to call in the place of `function`."""
        return AdoptedWorker(
            function,
            os.getpid(),
            tuple(Descriptor(channel.fileno()) for channel in self._theirs),
            tuple(map(Descriptor, self._stacks)),
            tuple(map(Descriptor, self._lease.fds)),
        )

    def watch(self, context: Any, timeout: float) -> None:
        """Ends the processes of torch's `context` when `timeout` seconds of the lease are over."""
        self._context = context
        for record, pid in zip(self.record.ranks, context.pids(), strict=True):
            record.pid = pid
        _close(self._theirs)
        # The main thread is in the suite's hands, which may join with or without a time-out of its own.
        self._watchdog = threading.Thread(target=self._end_in_time, args=(timeout,), name="triton-dist-watchdog")
        self._watchdog.start()

    def _end_in_time(self, timeout: float) -> None:
        if self._over.wait(max(0.0, self._lease.since + timeout - time.monotonic())):
            return
        running = [r for r, p in zip(self.record.ranks, self._context.processes, strict=True) if _is_running(p)]
        if not running:
            return
        # Nothing keeps artifacts of these.
        explain([(r, self._channels[r.rank]) for r in running], natively=False)
        self.record.hardware = hardware_texts([r.pid for r in running if r.pid is not None])
        for record in running:
            record.ended_by_us = True
        self.record.timeout = timeout
        self._kill()

    def end(self) -> None:
        """Ends what is left of the processes and gives the lease back; once is enough, more does no harm."""
        if self._lease.released:
            return
        self._over.set()
        if self._watchdog is not None:
            self._watchdog.join()
        if self._context is not None:
            self._kill()
            for process in self._context.processes:
                process.join()
            if self._quick is None:
                _end_groups(self._context.pids())
            # torch leaves these behind where a rank failed.
            for file in self._context.error_files:
                with suppress(FileNotFoundError):
                    os.unlink(file)
        if self._quick is not None:
            self._quick.end()
        for record, stacks in zip(self.record.ranks, self._stacks, strict=True):
            record.crash = read_text(stacks)
        close_all(self._stacks)
        _close([*self._channels, *self._theirs])
        if (reason := self.record.why_npus_are_suspect()) is not None:
            self._lease.suspect(reason)
        record_use(self._item, self._lease.npus, self._lease.since)
        self._lease.release()

    def _kill(self) -> None:
        for process in self._context.processes:
            if _is_running(process):
                os.kill(process.pid, signal.SIGKILL)


def _is_running(process: Any) -> bool:
    """Whether the multiprocessing `process` runs, without reaping it: that is for the main thread to do."""
    return not connection.wait([process.sentinel], 0)


def _end_groups(leaders: list[int]) -> None:
    """Ends what ranks that are gone have left in their process groups, after a moment to leave."""
    deadline = time.monotonic() + _TIME_TO_LEAVE
    while (left := [leader for leader in leaders if _signal_group(leader, 0)]) and time.monotonic() < deadline:
        time.sleep(0.01)
    for leader in left:
        _signal_group(leader, signal.SIGKILL)


def _signal_group(leader: int, signum: int) -> bool:
    """Whether the process group of `leader` exists; sends it `signum`."""
    try:
        os.killpg(leader, signum)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def _environment(changes: dict[str, str]) -> Iterator[None]:
    """`changes` to this process's environment while entered."""
    environ = env.child_environ()
    env.apply(changes)
    try:
        yield
    finally:
        env.apply({name: environ.get(name) for name in changes})


@contextmanager
def _nothing_left() -> Iterator[None]:
    """Ends processes that the body started if it raises: nobody else knows of them then."""
    before = multiprocessing.active_children()
    try:
        yield
    except BaseException:
        for process in multiprocessing.active_children():
            if process not in before:
                process.kill()
                process.join()
        raise


def _close(channels: list[Channel]) -> None:
    for channel in channels:
        channel.close()
