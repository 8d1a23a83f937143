"""Whether other threads of this process may still do something while one of them waits for other ranks."""

from __future__ import annotations

import os
import platform
import threading

# Names of this package's own threads begin so; all they do is watch, or wait on behalf of another one.
OWN_PREFIX = "triton-dist-"

# Threads whose code is in these modules hand data to threads that wait for it, or show progress.
_HARMLESS_MODULES = ("torch.utils.data.", "torch._inductor.", "tqdm.")

_FUTEX = {"x86_64": 202, "aarch64": 98}.get(platform.machine())
_TIMEOUT_ARGUMENT = 3


class OtherThreads:
    """Python threads besides the one that asks.

    A thread that sleeps on a lock without a time-out goes on only when another thread wakes it. Where all others are
    such, and have not been awake since the last time that they were asked about, none of them will be before the
    asking thread itself has gone on. A thread that sleeps for a time, reads from somewhere or computes may act. Threads
    without Python code, such as those of torch's libraries, are not asked about.
    """

    def __init__(self) -> None:
        self._asleep: dict[int, tuple[str, ...]] = {}

    def may_act(self) -> bool:
        """Whether one of them may. True at the first call where there are any that matter: see the class."""
        own = threading.current_thread()
        others = [t.native_id for t in threading.enumerate() if t is not own and t.native_id and not _is_harmless(t)]
        before, self._asleep = self._asleep, {}
        if not others:
            return False
        may_act = False
        for thread in others:
            if not os.path.exists(f"/proc/self/task/{thread}"):
                continue  # it has ended
            switches = _sleep_without_end(thread)
            if switches is None:
                may_act = True
            else:
                self._asleep[thread] = switches
                may_act = may_act or before.get(thread) != switches
        return may_act


def _is_harmless(thread: threading.Thread) -> bool:
    target = getattr(thread, "_target", None)
    modules = (type(thread).__module__, getattr(target, "__module__", None) or "")
    return thread.name.startswith(OWN_PREFIX) or any(f"{module}.".startswith(_HARMLESS_MODULES) for module in modules)


def _sleep_without_end(thread: int) -> tuple[str, ...] | None:
    """How often a thread that sleeps on a lock without a time-out has been switched from; None for other threads.

    Two equal answers mean that it has slept all the time between. The count grows when a thread leaves its core: one
    that woke after the first answer and sleeps again at the second has left it, at the latest before the count is
    taken the second time. A thread that waits for Python's own lock does so with a time-out.
    """
    try:
        before = _switches(thread)
        with open(f"/proc/self/task/{thread}/syscall") as file:
            number, *arguments = file.read().split()
        after = _switches(thread)
    except (OSError, ValueError):
        return None  # it has ended just now, or the kernel does not tell
    is_endless = number == str(_FUTEX) and int(arguments[_TIMEOUT_ARGUMENT], 16) == 0
    return after if is_endless and before == after else None


def _switches(thread: int) -> tuple[str, ...]:
    with open(f"/proc/self/task/{thread}/status") as file:
        return tuple(line for line in file if "ctxt_switches" in line)
