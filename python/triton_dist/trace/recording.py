"""The events of a rank, from its entry into a job to its end, and what is made of them there.

Each rank writes a file of its own beside the timeline that is asked for, and holds a lock on it while it is in the
job. The last to leave makes the timeline of all files that are there, also of ranks that have died, and removes them.
"""

from __future__ import annotations

import fcntl
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from triton_dist import env
from triton_dist.runtime import native
from triton_dist.trace import events, profile, timeline


class Recording:
    """What one rank records. Made where something is to be recorded: see :func:`begin`."""

    def __init__(self, rank: int, job: int, timeline_file: Path | None, is_profiled: bool) -> None:
        """`job` tells jobs apart that record into one file at a time."""
        self._rank = rank
        self._is_profiled = is_profiled
        self._timeline = timeline_file
        self._family = "" if timeline_file is None else f".{timeline_file.name}.{job}"
        if timeline_file is None:
            self._fd = os.memfd_create("triton-dist-events", os.MFD_CLOEXEC)
        else:
            timeline_file.parent.mkdir(parents=True, exist_ok=True)
            path = timeline_file.parent / f"{self._family}.{rank}.events"
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        native.library().trace_begin(self._fd)

    def start_straggler(self) -> None:
        """Has a process wait that makes the timeline if all ranks are killed."""
        if self._timeline is not None:
            from triton_dist.trace import straggler

            straggler.start(self._timeline, self._family)

    def show_profile(self) -> bool:
        """Prints aclshmem's table of cycles so far, if this is the rank that is profiled; whether it is."""
        recorded = events.read(self._fd) if self._is_profiled else None
        if recorded is not None:
            print(profile.table(recorded), flush=True)
        return self._is_profiled

    def end(self) -> None:
        """This rank leaves the job: prints its profile, and makes the timeline if it is the last.

        A failure is one line on stderr: a rank that ends must end.
        """
        if self._fd < 0:
            return
        try:
            self._end()
        except (OSError, ValueError) as error:
            print(f"triton-dist: the trace cannot be written: {error}", file=sys.stderr, flush=True)

    def _end(self) -> None:
        native.library().trace_end()
        self.show_profile()
        fd, self._fd = self._fd, -1
        try:
            if self._timeline is not None:
                with _turn(self._timeline, self._family) as lock:
                    fcntl.flock(fd, fcntl.LOCK_UN)
                    if _merge(self._timeline, self._family):
                        lock.unlink()
        finally:
            os.close(fd)

    def forget(self) -> None:
        """For a fork of the rank, which is not the rank."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def begin(rank: int, world_size: int, job: int) -> Recording | None:
    """Begins to record if TRITON_DIST_TRACE or SHMEM_CYCLE_PROF_PE ask for it.

    Raises:
        OSError: the file cannot be made.
    """
    file = env.TRITON_DIST_TRACE.get() if env.TRITON_DIST_TRACE.is_set() else None
    profiled = env.SHMEM_CYCLE_PROF_PE.get() if env.SHMEM_CYCLE_PROF_PE.is_set() else None
    if profiled is not None and profiled >= world_size and rank == 0:
        warnings.warn(
            f"SHMEM_CYCLE_PROF_PE={profiled} profiles nobody: the job has PEs 0 to {world_size - 1}",
            RuntimeWarning,
            stacklevel=2,
        )
    if file is None and profiled != rank:
        return None
    recording = Recording(rank, job, None if file is None else Path(file).absolute(), profiled == rank)
    if rank == 0:
        recording.start_straggler()
    return recording


def merge_if_left(file: Path, family: str) -> None:
    """Makes the timeline of one job, all of whose ranks have gone, if none of them has made it."""
    lock = _lock_file(file, family)
    # One that is leaving has made the lock. It must not be made here: it would be seen after the job.
    with suppress(FileNotFoundError), lock.open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
    if any(file.parent.glob(f"{family}.*.events")):
        _merge(file, family)
        lock.unlink(missing_ok=True)


def _merge(file: Path, family: str) -> bool:
    """Makes the timeline of one job, unless a rank of it is still there."""
    paths = sorted(file.parent.glob(f"{family}.*.events"))
    if not paths:
        return True
    with _opened(paths) as fds:
        if not all(_is_left(fd) for fd in fds):
            return False
        recorded = [rank for fd in fds if (rank := events.read(fd)) is not None]
        made = file.parent / f"{family}.json"
        made.write_text(timeline.render(recorded))
        made.replace(file)
    for path in paths:
        path.unlink()
    return True


def _is_left(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _opened(paths: list[Path]) -> Iterator[list[int]]:
    fds = [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in paths]
    try:
        yield fds
    finally:
        for fd in fds:
            os.close(fd)


@contextmanager
def _turn(file: Path, family: str) -> Iterator[Path]:
    """One rank at a time looks who is left."""
    path = _lock_file(file, family)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield path


def _lock_file(file: Path, family: str) -> Path:
    return file.parent / f"{family}.lock"
