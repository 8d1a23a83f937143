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
    answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _FLOCK.pack(fcntl.F_WRLCK, 0, start, length, 0))
    kind, *_ = _FLOCK.unpack(answer)
    return bool(kind != fcntl.F_UNLCK)
