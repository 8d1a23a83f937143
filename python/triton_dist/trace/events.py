"""Files of events, as the simulator's library writes them (csrc/runtime/src/trace.h)."""

from __future__ import annotations

import enum
import mmap
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass

_MAGIC = 0x7464697374_1001
_HEADER = struct.Struct("=6Q2i")
_HEADER_BYTES = 4096
_RECORD = struct.Struct("=4I6i4qQ2q2iq16x")


class Kind(enum.IntEnum):
    """What a record is about."""

    NONE = 0
    PROGRAM = 1
    CALL = 2
    SEEN = 3
    HOST = 4


@dataclass(frozen=True)
class Event:
    """One record.

    Attributes:
        number: of the record in its file; others name it as their parent.
        kind: what it is about.
        name: primitive, or call of host code.
        kernel, file, line: where in a kernel; line 0 where not known.
        program: its number in the grid, by axis.
        core: number of the core among those of its kind, from 0; is_cube says which kind.
        stream, launch: numbers in its process.
        begin, end: CLOCK_MONOTONIC, nanoseconds; end 0: it had not ended when the process did.
        pe: rank that is written or read; -1 where there is none.
        address: of the word or object, as the process sees it in its own heap.
        value, op: value set (op 0), added (1) or seen; op is -1 for calls of host code that are no signals.
        bytes: moved.
        parent: number of the record that it belongs to.
    """

    number: int
    kind: Kind
    name: str
    kernel: str
    file: str
    line: int
    core: int
    is_cube: bool
    program: tuple[int, int, int]
    pe: int
    begin: int
    end: int
    stream: int
    launch: int
    address: int
    value: int
    bytes: int
    op: int
    parent: int


@dataclass(frozen=True)
class RankEvents:
    """All events of one rank.

    Attributes:
        rank, world_size: its place in its job.
        heap_base: address of its symmetric heap in its process.
        events: in the order in which they began, roughly.
        lost: how many found no room in the file.
    """

    rank: int
    world_size: int
    heap_base: int
    events: list[Event]
    lost: int


def read(fd: int) -> RankEvents | None:
    """The events in file `fd`, also while they are written; None if nothing was ever written."""
    if os.fstat(fd).st_size < _HEADER_BYTES:
        return None
    with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as file:
        magic, text_bytes, room, _, given, heap_base, rank, world_size = _HEADER.unpack_from(file)
        if magic != _MAGIC:
            return None
        kept = min(given, room)
        return RankEvents(rank, world_size, heap_base, list(_events(file, text_bytes, kept)), max(0, given - room))


def _events(file: mmap.mmap, text_bytes: int, count: int) -> Iterator[Event]:
    texts: dict[int, str] = {0: ""}

    def text(offset: int) -> str:
        if offset not in texts:
            start = _HEADER_BYTES + offset
            texts[offset] = file[start : file.find(b"\0", start)].decode(errors="replace")
        return texts[offset]

    for number in range(1, count):
        fields = _RECORD.unpack_from(file, _HEADER_BYTES + text_bytes + number * _RECORD.size)
        kind, name, kernel, path, line, core, x, y, z, pe = fields[:10]
        begin, end, stream, launch, address, value, bytes_, op, is_cube, parent = fields[10:]
        if kind != Kind.NONE:
            yield Event(
                number=number,
                kind=Kind(kind),
                name=text(name),
                kernel=text(kernel),
                file=text(path),
                line=line,
                core=core,
                is_cube=bool(is_cube),
                program=(x, y, z),
                pe=pe,
                begin=begin,
                end=end,
                stream=stream,
                launch=launch,
                address=address,
                value=value,
                bytes=bytes_,
                op=op,
                parent=parent,
            )
