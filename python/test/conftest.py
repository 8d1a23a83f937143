"""What holds for every test of the project."""

from __future__ import annotations

import shutil
import signal
import tempfile

import pytest

from triton_dist import env

_LOG_FOLDER = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    # Ranks that fail on purpose log it; not into the folder of who runs the tests. Workers of xdist share it.
    if not env.SHMEM_LOG_PATH.is_set():
        config.stash[_LOG_FOLDER] = tempfile.mkdtemp(prefix="triton-dist-shmem-log-")
        env.apply({"SHMEM_LOG_PATH": config.stash[_LOG_FOLDER]})
    # A shell starts what runs behind an `&` with SIGINT ignored, and all descendants would inherit that: the tests
    # that interrupt a process could not.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_unconfigure(config: pytest.Config) -> None:
    folder = config.stash.get(_LOG_FOLDER, None)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
