"""Making a socket in another network namespace than this process's: it belongs there from then on."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

_CLONE_NEWNET = 0x40000000
_OWN = Path("/proc/thread-self/ns/net")


@contextlib.contextmanager
def entered(namespace: Path | None) -> Iterator[None]:
    """The calling thread is in `namespace` while entered, other threads stay where they are; None changes nothing.

    Raises:
        OSError: there is no such namespace, or this process may not enter it.
    """
    if namespace is None:
        yield
        return
    with open(_OWN, "rb") as own, open(namespace, "rb") as other:
        _enter(other.fileno(), namespace)
        try:
            yield
        finally:
            _enter(own.fileno(), _OWN)


def _enter(descriptor: int, path: Path) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), str(path))
