"""The waiting line for NPUs: first come, first served, and nobody has to clean up after the dead.

A place in the line is a lock on a range of bytes of an empty file. Who comes later takes a range further back; who
finds no range before its own is first. The kernel is the only one to know the line, so a process that is killed
leaves it by dying.
"""

from __future__ import annotations

import os

from triton_dist.testing.leases.directory import LeaseDirectory
from triton_dist.testing.leases.locks import lock_bytes, locked_bytes

_FILE = "line"
# The length of a range is the number of NPUs wanted, so that others can read it; a pool has no more than this.
_STRIDE = 4096


class Place:
    """A place in the line, from joining to `leave`."""

    def __init__(self, directory: LeaseDirectory, wanted: int) -> None:
        """Joins the line at its end.

        Args:
            directory: where the line's file lies.
            wanted: how many NPUs are waited for, below 4096.
        """
        self._fd = directory.open(_FILE)
        try:
            self._start = self._end_of_line()
            while not lock_bytes(self._fd, self._start, wanted):
                # Another came to the same place in the same moment.
                self._start = self._end_of_line()
        except BaseException:
            os.close(self._fd)
            raise

    def is_first(self) -> bool:
        return self._start == 0 or locked_bytes(self._fd, 0, self._start) is None

    def leave(self) -> None:
        os.close(self._fd)

    def _end_of_line(self) -> int:
        end = 0
        while found := locked_bytes(self._fd, end):
            end = (found[0] // _STRIDE + 1) * _STRIDE
        return end
