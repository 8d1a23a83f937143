"""What a rank does, from its birth by fork to its exit: one test, or several if it comes out of each as it went in."""

from __future__ import annotations

import atexit
import io
import os
import pickle
import random
import sys
import time
import unittest
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triton_dist import env
from triton_dist.activation import report
from triton_dist.runtime import backend, job, launches
from triton_dist.runtime.torch_device import device
from triton_dist.testing.ranks import coverage_data, debugger, quick_spawn, rewriting
from triton_dist.testing.ranks.isolation import Isolation
from triton_dist.testing.ranks.modules import SourceFinder
from triton_dist.testing.ranks.task import Task
from triton_dist.testing.ranks.watcher import Watcher, write_stacks_to
from triton_dist.testing.ranks.wire import Channel, Message, close_all, read_all, shortened


@dataclass(frozen=True)
class Descriptors:
    """The descriptors that a rank gets with a job.

    Attributes:
        task: a memory file with the pickled `Task`.
        channel: to pytest.
        stdout, stderr: what becomes standard output and error.
        stacks: a memory file for what faulthandler writes.
        lease: not used, only kept open: they hold the NPUs.
    """

    task: int
    channel: int
    stdout: int
    stderr: int
    stacks: int
    lease: tuple[int, ...]

    @classmethod
    def of_list(cls, fds: Sequence[int]) -> Descriptors:
        task, channel, stdout, stderr, stacks, *lease = fds
        return cls(task, channel, stdout, stderr, stacks, tuple(lease))

    def to_list(self) -> list[int]:
        return [self.task, self.channel, self.stdout, self.stderr, self.stacks, *self.lease]


def main(control: Channel) -> int:
    """Does the jobs that come in over `control`; returns the exit status once it is fit for none any more."""
    isolation = Isolation()
    # Of the NPUs that this process is bound to, between two jobs.
    bound: tuple[int, ...] = ()
    while (received := control.receive()) is not None:
        message, fds = received
        if message["spawned"]:
            return quick_spawn.main(fds)
        descriptors = Descriptors.of_list(fds)
        close_all(bound)
        is_first = not bound
        rank = message["rank"]
        own = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        if not _do_job(rank, own, descriptors, isolation, keep=message["keep"], meeting=message["meeting"]):
            return _leave()
        # The test may end, and its NPUs may go to others: nothing here touches them any more. A real one that has been
        # initialised stays with its process.
        _close_streams()
        os.close(descriptors.stacks)
        bound = descriptors.lease if message["npus"] else ()
        if not bound:
            close_all(descriptors.lease)
        elif is_first:
            isolation.settle()
        control.send({"is": "released"})
        if not isolation.restore():
            return 0
        control.send({"is": "idle"})
    return 0


def run_alone(rank: int, own: Mapping[str, str], fds: Sequence[int]) -> int:
    """Does the one job of a process that was started for it; returns the exit status.

    Args:
        rank: its number.
        own: the variables that it does not share with all other ranks.
        fds: those of `Descriptors`.
    """
    _do_job(rank, own, Descriptors.of_list(fds), Isolation(), keep=False)
    return _leave()


def _do_job(
    rank: int,
    own: Mapping[str, str],
    descriptors: Descriptors,
    isolation: Isolation,
    *,
    keep: bool,
    meeting: str | None = None,
) -> bool:
    """Runs a task as rank `rank`; returns whether the process may go on, unless pytest ends the job before.

    Args:
        meeting: the file where the ranks meet for torch.distributed; None if they meet at MASTER_ADDR.
    """
    write_stacks_to(descriptors.stacks)
    channel = Channel.of_descriptor(descriptors.channel)
    watcher = Watcher(channel, _call.__code__)
    watcher.start()
    task: Task = pickle.loads(read_all(descriptors.task))
    os.close(descriptors.task)
    try:
        _take_streams(descriptors)
        isolation.begin(rank, task)
        _take_surroundings(rank, own, task)
        _join_group(rank, int(own["LOCAL_RANK"]), task, meeting)
        if task.terminal:
            debugger.serve_breakpoints(rank, watcher.ask_for_terminal)
        with coverage_data.measured(task.coverage):
            _call(rank, task, isolation.imported)
    except BaseException as error:
        outcome = _outcome(error, task)
        if rank == task.debugged and outcome["kind"] == "failed":
            debugger.post_mortem(rank, watcher.ask_for_terminal, outcome["summary"], error.__traceback__)
    else:
        outcome = {"kind": "returned"}
    _flush()
    channel.send({"is": "outcome", "at": time.monotonic(), **outcome})
    if outcome["kind"] == "returned":
        # Whoever still waits for this rank in a barrier is told that it will not come.
        job.announce_exit("its worker function has returned")
    # A rank that left early would take the store, and connections that others still use, with it. One that failed is
    # never let go: pytest ends it with the others, and none of them fails for want of this one.
    watcher.wait_to_leave()
    channel.close()
    return keep and isolation.is_kept()


def _take_streams(descriptors: Descriptors) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    _put_streams(null, descriptors.stdout, descriptors.stderr)
    close_all({null, descriptors.stdout, descriptors.stderr})
    for fd, name in ((1, "stdout"), (2, "stderr")):
        # Written by line: what was printed before a SIGKILL is to be seen too.
        stream = io.TextIOWrapper(
            io.BufferedWriter(io.FileIO(fd, "w", closefd=False)),
            encoding="utf-8",
            errors="backslashreplace",
            line_buffering=True,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _close_streams() -> None:
    """Lets go of the test's files. Later output has no reader."""
    _flush()
    null = os.open(os.devnull, os.O_RDWR)
    _put_streams(null, null, null)
    os.close(null)


def _put_streams(stdin: int, stdout: int, stderr: int) -> None:
    for source, target in ((stdin, 0), (stdout, 1), (stderr, 2)):
        os.dup2(source, target)


def _take_surroundings(rank: int, own: Mapping[str, str], task: Task) -> None:
    """Makes this process look as if the test had started it."""
    os.chdir(task.directory)
    sys.path[:] = task.sys_path
    sys.argv[:] = task.argv
    env.replace({**task.environ, **own})
    _seed(task.seed + rank)
    rewriter = rewriting.install(task.assertions) if task.assertions else None
    sys.meta_path.insert(0, SourceFinder(task.modules, rewriter))


def _seed(seed: int) -> None:
    """Gives random numbers of its own to each rank and test, the same again if the test runs again with its seed."""
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.manual_seed(seed)


def _join_group(rank: int, npu_number: int, task: Task, meeting: str | None) -> None:
    import torch
    import torch.distributed as dist

    npu: Any = getattr(torch, "npu", None)
    if npu is not None:
        if backend.active() == "sim":
            # The zygote's device has an index for every NPU of the pool.
            device.count_devices()
        npu.set_device(npu_number)
    elif "hccl" in task.backend and report.said:
        # Said where this process was forked from, and nobody has seen it.
        raise RuntimeError("; ".join(report.said))
    if meeting is None:
        dist.init_process_group(task.backend, init_method="env://", rank=rank, world_size=task.world_size)
        return
    # A TCPStore asks DNS for the name of each end, in the form ::ffff:127.0.0.1, which no hosts file has: 5 s where an
    # answer gets lost.
    store = dist.FileStore(meeting, task.world_size)
    dist.init_process_group(task.backend, store=store, rank=rank, world_size=task.world_size)


def _call(rank: int, task: Task, imported: Callable[[], None]) -> None:
    function, args = pickle.loads(task.call)
    imported()
    function(rank, task.world_size, *args)
    # What a kernel has to say that nobody waited for comes out here.
    launches.synchronize()


def _leave() -> int:
    """What a process does at its end; returns the exit status."""
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()
    atexit._run_exitfuncs()
    _flush()
    return 0


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue  # closed or replaced by the test


def _outcome(error: BaseException, task: Task) -> Message:
    """What became of the worker function, in a message's words."""
    import pytest

    if isinstance(error, SystemExit) and not error.code:
        return {"kind": "returned"}
    if isinstance(error, (pytest.skip.Exception, unittest.SkipTest)):
        return {"kind": "skipped", "summary": str(error)}
    if isinstance(error, pytest.xfail.Exception):
        return {"kind": "xfailed", "summary": str(error)}
    info = pytest.ExceptionInfo.from_exception(_without_our_frames(error))
    style: Any = task.traceback_style
    if isinstance(error, pytest.fail.Exception) and not error.pytrace:
        style = "value"
    text = str(info.getrepr(style=style, funcargs=False))
    lines = info.exconly(tryshort=True).splitlines()
    return {"kind": "failed", "summary": shortened(lines[0] if lines else info.typename), "text": shortened(text)}


def _without_our_frames(error: BaseException) -> BaseException:
    """`error`, its traceback beginning in the worker function if it came from there."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code is not _call.__code__:
        traceback = traceback.tb_next
    if traceback is not None and traceback.tb_next is not None:
        return error.with_traceback(traceback.tb_next)
    return error
