"""Kernel locks that belong to an open file, not to a process.

Both kinds used here stay until the last descriptor of the open file is closed, in whichever process: descriptors
inherited by a fork or passed on keep them, and the death of a process, however sudden, gives up its share.
"""

from __future__ import annotations

import errno
import fcntl
import struct

# struct flock of Linux on 64-bit machines: type, whence, start, length, pid.
_FLOCK = struct.Struct("hhqqi4x")
_BUSY = (errno.EACCES, errno.EAGAIN)


def lock_file(fd: int) -> bool:
    """Takes the whole file of `fd` for its open file; False if another open file has it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _BUSY:
            return False
        raise
    return True


def lock_bytes(fd: int, start: int, length: int) -> bool:
    """Takes `length` bytes from `start` on, which may lie past the end of the file; False if any is taken."""
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, 0, start, length, 0))
    except OSError as error:
        if error.errno in _BUSY:
            return False
        raise
    return True


def locked_bytes(fd: int, start: int, length: int = 0) -> tuple[int, int] | None:
    """Some range (start, length) that another open file has locked between `start` and `start + length`.

    A `length` of 0 means without end. None if there is no such range.
    """
    answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _FLOCK.pack(fcntl.F_WRLCK, 0, start, length, 0))
    kind, _, found, size, _ = _FLOCK.unpack(answer)
    return None if kind == fcntl.F_UNLCK else (found, size)
