"""Kernel locks that belong to an open file, not to a process.

They stay until the last descriptor of the open file is closed, in whichever process: descriptors inherited by a fork
or passed on keep them, and the death of a process, however sudden, gives up its share.
"""

from __future__ import annotations

import errno
import fcntl
import struct

# struct flock of Linux on 64-bit machines: type, whence, start, length, pid.
_FLOCK = struct.Struct("hhqqi4x")
_BUSY = (errno.EACCES, errno.EAGAIN)


def lock_bytes(fd: int, start: int, length: int = 1) -> bool:
    """Takes `length` bytes from `start` on, which may lie past the end of the file; False if any is taken."""
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, 0, start, length, 0))
    except OSError as error:
        if error.errno in _BUSY:
            return False
        raise
    return True


def unlock_bytes(fd: int, start: int, length: int = 1) -> None:
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_UNLCK, 0, start, length, 0))


def is_locked(fd: int, start: int, length: int = 1) -> bool:
    """Whether another open file has locked any of the `length` bytes from `start` on. `fd` may be read-only."""
    return _some_locked(fd, start, length) is not None


def unlocked_bytes(fd: int, start: int, length: int) -> set[int]:
    """Those of the `length` bytes from `start` on that no other open file has locked. `fd` may be read-only."""
    unlocked: set[int] = set()
    ranges = [(start, start + length)]
    while ranges:
        first, end = ranges.pop()
        if first >= end:
            continue
        if (found := _some_locked(fd, first, end - first)) is None:
            unlocked.update(range(first, end))
        else:
            # Any of them, not the first: both sides are still to be looked at.
            ranges += [(first, found[0]), (found[1], end)]
    return unlocked


def _some_locked(fd: int, start: int, length: int) -> tuple[int, int] | None:
    """Beginning and end of some range that another open file has locked among the `length` bytes from `start` on."""
    answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _FLOCK.pack(fcntl.F_WRLCK, 0, start, length, 0))
    kind, _, found, size, _ = _FLOCK.unpack(answer)
    if kind == fcntl.F_UNLCK:
        return None
    # A size of 0 means without end.
    return found, found + size if size else start + length
