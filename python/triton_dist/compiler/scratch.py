"""Directories for temporary files that are removed with certainty: by their process, else by the next one.

Each is locked by the process that made it, by a lock of the kernel that goes with the process however it ends. Who
makes the next one removes those that nobody has locked: those of processes that were killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "triton-dist-scratch-"


@contextlib.contextmanager
def directory() -> Iterator[Path]:
    """A directory that is there while entered. Raises OSError where there is no room for one."""
    sweep()
    path, lock = _make()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def _make() -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        # Another process may sweep between the two: it takes the lock first then, and the directory away.
        with contextlib.suppress(FileNotFoundError):
            if (lock := _locked(path)) is not None:
                return path, lock


def _locked(path: Path) -> int | None:
    """A descriptor that locks the directory; None if another process has it, or has taken it away."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), os.stat(path)):
            return descriptor
    os.close(descriptor)
    return None


@functools.cache
def sweep() -> None:
    """Removes this user's directories whose processes have ended; the first call of a process does, others nothing."""
    with contextlib.suppress(OSError):
        for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):
                if path.stat().st_uid == os.geteuid() and (lock := _locked(path)) is not None:
                    shutil.rmtree(path, ignore_errors=True)
                    os.close(lock)
