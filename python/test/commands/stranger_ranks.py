"""Workers in place of the self-test's own: of some, a rank does not do what it should."""

from __future__ import annotations

import os
import signal
import time


def launch(rank: int, world_size: int) -> None:
    """All is well."""


meet = launch


def notify_and_wait(rank: int, world_size: int) -> None:
    """Rank 1 never comes back."""
    if rank == 1:
        print("rank 1 is about to hang", flush=True)
        never_returns()


def never_returns() -> None:
    time.sleep(10_000)


def put(rank: int, world_size: int) -> None:
    """Rank 0 is killed, as the kernel kills who takes too much memory."""
    if rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(10_000)
