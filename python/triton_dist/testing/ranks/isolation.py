"""Whether a rank comes out of a test as it went in, so that another test may have it.

Python and torch have much state that a test can change. What can be put back is put back. What cannot, or would cost
more than a new rank, makes the rank unfit: it leaves as a process of its own would have, and another is forked.
"""

from __future__ import annotations

import atexit
import gc
import os
import threading
from collections.abc import Callable
from typing import Any

from triton_dist.runtime import job
from triton_dist.testing.ranks import process_state, torch_state
from triton_dist.testing.ranks.processes import children
from triton_dist.testing.ranks.task import Task
from triton_dist.testing.ranks.user_modules import UserModules

# How much more memory than at its birth an idle rank may have, in bytes.
_MOST_GROWTH = 256 * 1024 * 1024
# How many more descriptors. Libraries keep some open that they were first used with.
_MOST_DESCRIPTORS = 16


class Isolation:
    """The state of a rank at its birth, and what it takes to come back to it."""

    def __init__(self) -> None:
        self._modules = UserModules()
        self._process = process_state.snapshot()
        self._torch = torch_state.snapshot()
        self._resident = _resident_bytes()
        self._descriptors = len(os.listdir("/proc/self/fd"))
        self._exit_functions: list[tuple[Callable[..., object], tuple[Any, ...], dict[str, Any]]] = []
        self._register = atexit.register
        self._unregister = atexit.unregister
        atexit.register = self._note_exit_function  # type: ignore[assignment]

    def begin(self, rank: int, task: Task) -> None:
        """Makes ready for a task: what earlier tests have imported stays only where it is right for this one too."""
        self._modules.begin(rank, task)

    def imported(self) -> None:
        """To be called when the test's modules are there and it has not run yet."""
        self._modules.imported()

    def settle(self) -> None:
        """Takes this process as it is for one at its birth, where a real NPU has been initialised: that takes much."""
        self._resident = _resident_bytes()
        self._descriptors = len(os.listdir("/proc/self/fd"))

    # -------------------------------------------------------------------------- before the lease ends

    def is_kept(self) -> bool:
        """Whether nothing runs on, or holds memory of the job, that the test has left behind."""
        return job.current() is None and not children() and threading.enumerate() == [threading.main_thread()]

    # --------------------------------------------------------------------------- after the lease ends

    def restore(self) -> bool:
        """Puts back what the test has changed; returns whether the rank is fit for another one."""
        try:
            self._run_exit_functions()
            process_state.restore(self._process)
            torch_state.leave_groups()
            torch_state.restore(self._torch)
            self._modules.end()
            gc.collect()
            return self._is_as_before()
        except Exception:
            # A test can break anything, also what this needs.
            return False

    def _is_as_before(self) -> bool:
        return (
            process_state.is_like(self._process)
            and torch_state.is_like(self._torch)
            and not children()
            and threading.enumerate() == [threading.main_thread()]
            and len(os.listdir("/proc/self/fd")) <= self._descriptors + _MOST_DESCRIPTORS
            and _resident_bytes() <= self._resident + _MOST_GROWTH
        )

    # ----------------------------------------------------------------------------- exit functions

    def _note_exit_function(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Stands for atexit.register: functions of the test's own modules are due when it ends."""
        if self._modules.owns(getattr(function, "__module__", None)):
            self._exit_functions.append((function, args, kwargs))
        return self._register(function, *args, **kwargs)

    def _run_exit_functions(self) -> None:
        while self._exit_functions:
            function, args, kwargs = self._exit_functions.pop()
            self._unregister(function)
            function(*args, **kwargs)


def _resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
