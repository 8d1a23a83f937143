"""What holds for every test of the project."""

from __future__ import annotations

import contextlib
import signal

import pytest

from triton_dist import env
from triton_dist.compiler import scratch

_FOLDERS = pytest.StashKey[contextlib.ExitStack]()


def pytest_configure(config: pytest.Config) -> None:
    # Ranks that fail on purpose log it; not into the folder of who runs the tests. Workers of xdist share it.
    if not env.SHMEM_LOG_PATH.is_set():
        config.stash[_FOLDERS] = contextlib.ExitStack()
        env.apply({"SHMEM_LOG_PATH": config.stash[_FOLDERS].enter_context(scratch.directory())})
    # A shell starts what runs behind an `&` with SIGINT ignored, and all descendants would inherit that: the tests
    # that interrupt a process could not.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_unconfigure(config: pytest.Config) -> None:
    folders = config.stash.get(_FOLDERS, None)
    if folders is not None:
        folders.close()
