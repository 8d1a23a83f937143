"""What Linux offers to make sure that processes end: death signals, subreapers, process groups."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_PTRACER = 0x59616D61
_PR_SET_PTRACER_ANY = 2**64 - 1
# How long descendants of ended ranks may take to leave by themselves, in seconds: multiprocessing's resource
# tracker, for one, then removes shared memory that its parent left behind.
_TIME_TO_LEAVE = 0.3
_LOOK = 0.002

_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int, signum: signal.Signals = signal.SIGKILL) -> None:
    """Lets the kernel send `signum` to this process when the thread that made it ends; `parent` is its pid."""
    _prctl(_PR_SET_PDEATHSIG, signum)
    if os.getppid() != parent:
        # It ended before the kernel was asked.
        os.kill(os.getpid(), signum)


def become_subreaper() -> None:
    """Makes this process the parent of every descendant whose own parent ends."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def let_debuggers_in() -> None:
    """Lets processes of this user debug this one, also where the kernel keeps that for a process's ancestors."""
    with suppress(OSError):  # a kernel without that restriction
        _prctl(_PR_SET_PTRACER, _PR_SET_PTRACER_ANY)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}): {os.strerror(code)}")


def children() -> list[int]:
    """The pids of this process's children."""
    found: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        try:
            found += map(int, (task / "children").read_text().split())
        except FileNotFoundError:
            continue  # the thread has ended, or the kernel does not list children
    return found


class Orphans:
    """Processes that came to this one, a subreaper, because their own parents ended."""

    def __init__(self) -> None:
        self._expected = False
        self._seen_at: float | None = None

    def expect(self) -> None:
        """Tells that a process has ended which may have had children."""
        self._expected = True

    def end(self, known: set[int]) -> bool:
        """Whether there are none; those that do not leave by themselves in a moment are killed.

        To be called again and again, with children reaped in between.

        Args:
            known: children of this process that are none.
        """
        if not self._expected:
            return True
        left = [child for child in children() if child not in known]
        if not left:
            self._expected, self._seen_at = False, None
            return True
        now = time.monotonic()
        if self._seen_at is None:
            self._seen_at = now
        if now > self._seen_at + _TIME_TO_LEAVE:
            for child in left:
                os.kill(child, signal.SIGKILL)
        return False


def end_descendants(first: set[int], on_exit: Callable[[int, int], None]) -> None:
    """Ends all descendants of this process, which must be a subreaper, and waits until none is left.

    Args:
        first: those of the children to end at once; others may leave by themselves for a moment.
        on_exit: called with pid and wait status of each process that ended.
    """
    for pid in first:
        os.kill(pid, signal.SIGKILL)
    patience = time.monotonic() + _TIME_TO_LEAVE
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid:
            first.discard(pid)
            on_exit(pid, status)
            continue
        if time.monotonic() > patience:
            # Again and again: the children of those that end now come to this process.
            for child in children():
                os.kill(child, signal.SIGKILL)
        time.sleep(_LOOK)
