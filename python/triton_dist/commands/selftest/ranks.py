"""Rank processes for the steps: the leases and the processes that the pytest plugin has for its tests."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable

from triton_dist.commands.selftest.step import StepFailedError, StepSkippedError
from triton_dist.runtime import backend
from triton_dist.testing.choice import Choice
from triton_dist.testing.fixture import rank_environ
from triton_dist.testing.hardware_report import hardware_texts
from triton_dist.testing.leases.directory import LeaseDirectory
from triton_dist.testing.leases.errors import LeaseError
from triton_dist.testing.leases.pool import Lease, NpuPool
from triton_dist.testing.ranks.client import ZygoteClient, ZygoteError
from triton_dist.testing.ranks.job import Job
from triton_dist.testing.ranks.record import JobRecord
from triton_dist.testing.ranks.task import Task, pickled_call
from triton_dist.testing.report import RanksFailed, judge

# Seconds that torch and Triton may take to be imported on a busy host, whatever the time-out.
_TIME_TO_IMPORT = 60.0


def work(rank: int, world_size: int, worker: str) -> None:
    """What is called in a rank: `worker` names a function as module:function.

    By its name, since this process imports neither torch nor Triton: either may be what is broken, and hang.
    """
    module, _, function = worker.partition(":")
    getattr(importlib.import_module(module), function)(rank, world_size)


class Ranks:
    """The processes of a self-test; none is left once it is closed."""

    def __init__(self, timeout: float, while_waiting: Callable[[], None]) -> None:
        """Args:
        timeout: seconds that a job's ranks may take, and that their NPUs may be waited for.
        while_waiting: called now and then.
        """
        self._timeout = timeout
        self._while_waiting = while_waiting
        self._zygote: ZygoteClient | None = None

    def close(self) -> None:
        """Ends whatever is left of them."""
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None

    def run(self, worker: str, world_size: int, group: str, choice: Choice) -> dict[str, str]:
        """Calls `worker(rank, world_size)` in as many new processes at once, each on an NPU of its own.

        Args:
            worker: the function, as module:function.
            group: backend of the process group that the ranks are in.
            choice: the NPUs that may be used.

        Returns:
            What the ranks printed, by the title of each text.

        Raises:
            StepSkippedError: there are too few NPUs.
            StepFailedError: no NPU was to be had in time, a rank failed, or ranks did not end in time.
        """
        there = len(choice.inventory.npus)
        if there < world_size:
            raise StepSkippedError(f"it takes {world_size} NPUs, and there {'is' if there == 1 else 'are'} {there}")
        try:
            zygote = self._ready_zygote()
            lease = self._lease(choice, world_size)
            try:
                job = Job(zygote, lease, _task(worker, world_size, group, choice, lease), captured=True, warm=False)
                try:
                    job.run(self._timeout, self._while_waiting)
                finally:
                    if (reason := job.record.why_npus_are_suspect()) is not None:
                        lease.suspect(reason)
            finally:
                lease.release()
        except LeaseError as error:
            raise StepFailedError(str(error), "python -m triton_dist npus, which shows who has them") from error
        except ZygoteError as error:
            first, _, rest = str(error).partition("\n")
            raise StepFailedError(first, "python -m triton_dist doctor", {"output": rest} if rest else {}) from error
        return _judged(job.record)

    def _ready_zygote(self) -> ZygoteClient:
        if self._zygote is None or not self._zygote.is_alive():
            self._zygote = ZygoteClient.start(kept=0)
        seconds = max(self._timeout, _TIME_TO_IMPORT)
        what = "the process that starts ranks was not ready"
        self._zygote.wait_until_ready(self._until(seconds, what, ZygoteError))
        return self._zygote

    def _lease(self, choice: Choice, count: int) -> Lease:
        pool = NpuPool(choice.inventory, LeaseDirectory.of_this_host())
        what = "others had the NPUs all the time"
        return pool.acquire(count, self._until(self._timeout, what, LeaseError), "selftest")

    def _until(self, seconds: float, what: str, kind: type[Exception]) -> Callable[[], None]:
        """What is called while waiting: raises `kind` when the time is over."""
        deadline = time.monotonic() + seconds

        def look() -> None:
            self._while_waiting()
            if time.monotonic() > deadline:
                raise kind(f"time-out: {what}, for {seconds:g} s")

        return look


def _task(worker: str, world_size: int, group: str, choice: Choice, lease: Lease) -> Task:
    return Task(
        world_size=world_size,
        backend=group,
        environ=rank_environ(world_size, lease, choice.inventory.environ(lease.npus)),
        directory=os.getcwd(),
        sys_path=list(sys.path),
        argv=list(sys.argv),
        modules={},
        assertions=None,
        traceback_style="short",
        call=pickled_call(work, (worker,)),
        seed=0,
        coverage=None,
        terminal=False,
        debugged=None,
    )


def _judged(record: JobRecord) -> dict[str, str]:
    texts = {}
    for rank in record.ranks:
        for name, text in (("stdout", rank.stdout), ("stderr", rank.stderr), ("native stacks", rank.native)):
            if text.strip():
                texts[f"{name} of rank {rank.rank}"] = text
    try:
        judge(record)
    except RanksFailed as failure:
        text = failure.msg or ""
        # After a time-out it has been asked for already, while the ranks were there.
        more = record.hardware or hardware_texts([rank.pid for rank in record.ranks if rank.pid is not None])
        raise StepFailedError(text.splitlines()[0], _mend(), {"ranks": text, **texts, **more}) from None
    return texts


def _mend() -> str:
    if backend.active() == "sim":
        return "the report has what the ranks did and waited for: send it back"
    return "the report has the ranks' tracebacks and CANN's logs: send it back; ASCEND_GLOBAL_LOG_LEVEL=1 says more"
