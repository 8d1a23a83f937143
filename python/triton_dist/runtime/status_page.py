"""What the ranks of a job tell each other about themselves: one slot a rank on a page that all of them share.

A rank writes its own slot only. What it writes before it arrives at a barrier, the others read behind that barrier.
"""

from __future__ import annotations

import enum
import mmap
import struct
from dataclasses import dataclass

SLOT_BYTES = 512

_STATE = struct.Struct("=iH")
_TEXT_BYTES = 248
_CALLS_OFFSET = 256
_CALL = struct.Struct("=q32sqqq")
_CALL_BYTES = 64


class State(enum.IntEnum):
    """How a rank is, in its own words."""

    MEMBER = 0
    FINALIZED = 1
    EXITED = 2
    """Its interpreter ended without a finalize; the text has the exception, if there was one."""


@dataclass(frozen=True)
class CollectiveCall:
    """A collective call, as a rank makes it. All ranks must make equal calls in equal order.

    Attributes:
        name: function that the user called.
        bytes: size asked for, or 0.
        align: alignment asked for in bytes, or 0.
        offset: what it is about or led to, as an offset in the heap in bytes; -1 when it failed on that rank.
    """

    name: str
    bytes: int = 0
    align: int = 0
    offset: int = 0

    def __str__(self) -> str:
        if self.name.startswith("triton."):
            return self.name  # what it carries is no size
        if self.align:
            return f"{self.name} of {self.bytes} bytes"
        return f"{self.name} at heap offset {self.offset}" if self.offset else self.name


class StatusPage:
    """The shared page of a job, mapped. `fd` stays the caller's to close."""

    def __init__(self, fd: int, rank: int, world_size: int) -> None:
        self._map = mmap.mmap(fd, SLOT_BYTES * world_size)
        self._own = rank * SLOT_BYTES

    def announce(self, state: State, text: str = "") -> None:
        """Says how this rank is. Texts longer than the slot lose their end."""
        encoded = text.encode()[:_TEXT_BYTES]
        start = self._own + _STATE.size
        self._map[start : start + len(encoded)] = encoded
        _STATE.pack_into(self._map, self._own, state, len(encoded))

    def state(self, rank: int) -> tuple[State, str]:
        """How `rank` says it is, and its text."""
        start = rank * SLOT_BYTES
        state, length = _STATE.unpack_from(self._map, start)
        start += _STATE.size
        return State(state), self._map[start : start + length].decode(errors="replace")

    def post(self, sequence: int, call: CollectiveCall) -> None:
        """Says which collective call this rank makes as its `sequence`-th.

        Two posts fit: nobody can be more than one collective call ahead of the slowest reader.
        """
        name = call.name.encode()[:32]
        start = self._own + _CALLS_OFFSET + sequence % 2 * _CALL_BYTES
        _CALL.pack_into(self._map, start, sequence, name, call.bytes, call.align, call.offset)

    def posted(self, rank: int, sequence: int) -> CollectiveCall | None:
        """What `rank` posted as its `sequence`-th collective call; None if it has not."""
        start = rank * SLOT_BYTES + _CALLS_OFFSET + sequence % 2 * _CALL_BYTES
        found, name, size, align, offset = _CALL.unpack_from(self._map, start)
        if found != sequence:
            return None
        return CollectiveCall(name.rstrip(b"\0").decode(errors="replace"), size, align, offset)

    def close(self) -> None:
        """Unmaps the page."""
        self._map.close()
