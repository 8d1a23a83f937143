"""A build that ran out of memory goes on with fewer jobs at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from nox.command import CommandFailed

from ci import report

_VMSTAT = Path("/proc/vmstat")


def retry(attempt: Callable[[int], None], jobs: int, killed: Callable[[], int] | None = None) -> None:
    """Calls `attempt` with `jobs`, and with half as many each time that it fails while the kernel killed for memory.

    Args:
        attempt: a build that begins where the last one ended; raises CommandFailed.
        jobs: how many jobs the first one may run at once.
        killed: how often the kernel has killed a process for memory since the machine started.
    """
    count = killed or kills
    while True:
        before = count()
        try:
            return attempt(jobs)
        except CommandFailed:
            if jobs == 1 or count() == before:
                raise
            jobs = max(1, jobs // 2)
            report.note(f"memory ran out and the kernel killed a process: the build goes on with {jobs} jobs at once")


def kills() -> int:
    """How often the kernel has killed a process for memory, in any container of the machine; 0 if it does not say."""
    found = re.search(r"^oom_kill (\d+)$", _VMSTAT.read_text(), re.MULTILINE) if _VMSTAT.is_file() else None
    return int(found[1]) if found else 0
