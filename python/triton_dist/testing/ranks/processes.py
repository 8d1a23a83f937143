"""What Linux offers to make sure that processes end: death signals, subreapers, process groups."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
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
