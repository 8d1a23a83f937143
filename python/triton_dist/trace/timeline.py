"""A timeline in the Trace Event format, which Perfetto and Chrome open: a process a rank, a track a stream and core."""

from __future__ import annotations

import bisect
import json
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

from triton_dist.trace.events import Event, Kind, RankEvents

# Which calls of kernels are signals; those of host code say it by their `op`.
_SIGNALS = ("notify", "putmem_signal", "putmem_signal_nbi", "signal_op", "int_p")
_ADD = 1

_HOST_TRACK = 0
_FIRST_STREAM = 1
_FIRST_CUBE_CORE = 10_000
_FIRST_VECTOR_CORE = 20_000


def render(ranks: Iterable[RankEvents]) -> str:
    """The timeline of a job, as JSON."""
    jobs = sorted(ranks, key=attrgetter("rank"))
    origin = min((event.begin for rank in jobs for event in rank.events), default=0)
    lost = {str(rank.rank): rank.lost for rank in jobs if rank.lost}
    timeline = {
        "traceEvents": [item for rank in jobs for item in _Rank(rank, origin).items()] + list(_arrows(jobs, origin)),
        "displayTimeUnit": "ns",
        "otherData": {"tool": "triton-dist", **({"events lost, by rank": lost} if lost else {})},
    }
    return json.dumps(timeline) + "\n"


def _microseconds(nanoseconds: int) -> float:
    return nanoseconds / 1000


class _Rank:
    def __init__(self, rank: RankEvents, origin: int) -> None:
        self._rank = rank
        self._origin = origin
        streams = sorted({event.stream for event in rank.events if event.kind is Kind.PROGRAM})
        self._track_of_stream = {stream: _FIRST_STREAM + index for index, stream in enumerate(streams)}
        self._last = max((max(event.begin, event.end) for event in rank.events), default=origin)

    def items(self) -> Iterator[dict[str, Any]]:
        events = self._rank.events
        yield self._meta("process_name", 0, {"name": f"rank {self._rank.rank}"})
        yield self._meta("process_sort_index", 0, {"sort_index": self._rank.rank})
        tracks = {_track(event): _track_name(event) for event in events if event.kind != Kind.SEEN}
        programs = [event for event in events if event.kind is Kind.PROGRAM]
        tracks.update({track: _stream_name(stream) for stream, track in self._track_of_stream.items()})
        for track, name in sorted(tracks.items()):
            yield self._meta("thread_name", track, {"name": name})
            yield self._meta("thread_sort_index", track, {"sort_index": track})
        yield from self._kernels(programs)
        for event in events:
            if event.kind is Kind.PROGRAM:
                name = f"{event.kernel} ({','.join(map(str, event.program))})"
                yield self._span(name, "program", _track(event), event.begin, event.end, {"kernel": event.kernel})
            elif event.kind in (Kind.CALL, Kind.HOST):
                category = "call" if event.kind is Kind.CALL else "host"
                yield self._span(event.name, category, _track(event), event.begin, event.end, self._details(event))

    def _kernels(self, programs: list[Event]) -> Iterator[dict[str, Any]]:
        launches: dict[int, list[Event]] = {}
        for program in programs:
            launches.setdefault(program.launch, []).append(program)
        for launch, of_launch in launches.items():
            first = of_launch[0]
            ends = [program.end for program in of_launch]
            end = max(ends) if all(ends) else 0
            begin = min(program.begin for program in of_launch)
            details = {"launch": launch, "programs": len(of_launch)}
            yield self._span(first.kernel, "kernel", self._track_of_stream[first.stream], begin, end, details)

    def _details(self, event: Event) -> dict[str, Any]:
        details: dict[str, Any] = {}
        if event.file:
            details["at"] = f"{event.file}:{event.line}"
        if event.kernel:
            details["kernel"], details["program"] = event.kernel, list(event.program)
        if event.pe >= 0:
            details["pe"] = event.pe
        if event.bytes:
            details["bytes"] = event.bytes
        if event.address:
            details["heap offset"] = event.address - self._rank.heap_base
        if _is_signal(event):
            details["signal"], details["sig_op"] = event.value, "add" if event.op == _ADD else "set"
        return details

    def _span(
        self, name: str, category: str, track: int, begin: int, end: int, details: dict[str, Any]
    ) -> dict[str, Any]:
        if not end:
            details = {**details, "unfinished": True}
        return {
            "ph": "X",
            "name": name,
            "cat": category,
            "pid": self._rank.rank,
            "tid": track,
            "ts": _microseconds(begin - self._origin),
            "dur": _microseconds((end or self._last) - begin),
            "args": details,
        }

    def _meta(self, name: str, track: int, details: dict[str, Any]) -> dict[str, Any]:
        return {"ph": "M", "name": name, "pid": self._rank.rank, "tid": track, "args": details}


def _stream_name(stream: int) -> str:
    # Each NPU's default stream has a negative number.
    return f"stream {stream}" if stream >= 0 else "default stream"


def _track(event: Event) -> int:
    if event.kind is Kind.HOST:
        return _HOST_TRACK
    return (_FIRST_CUBE_CORE if event.is_cube else _FIRST_VECTOR_CORE) + event.core


def _track_name(event: Event) -> str:
    if event.kind is Kind.HOST:
        return "host"
    return f"{'cube' if event.is_cube else 'vector'} core {event.core}"


def _is_signal(event: Event) -> bool:
    if event.kind is Kind.HOST:
        return event.op >= 0
    return event.kind is Kind.CALL and event.name in _SIGNALS


def _arrows(ranks: list[RankEvents], origin: int) -> Iterator[dict[str, Any]]:
    """From each signal to the wait that it satisfied: the last one on the word before the word was seen so.

    Where the word was set, it must have been to the value seen; sums of adds are not computed.
    """
    signals: dict[tuple[int, int], list[tuple[int, int, Event]]] = {}
    for rank in ranks:
        for event in rank.events:
            if _is_signal(event):
                word = (event.pe, event.address - rank.heap_base)
                signals.setdefault(word, []).append((event.begin, rank.rank, event))
    for of_word in signals.values():
        of_word.sort(key=lambda signal: signal[:2])
    number = 0
    for rank in ranks:
        calls = {event.number: event for event in rank.events if event.kind is Kind.CALL}
        for seen in rank.events:
            waited = calls.get(seen.parent)
            if seen.kind is not Kind.SEEN or waited is None:
                continue
            word = (rank.rank, seen.address - rank.heap_base)
            sent = _last_before(signals.get(word, []), seen)
            if sent is None:
                continue
            number += 1
            _, sender, signal = sent
            # Ends of arrows bind to the span around their time.
            yield _end_of_arrow("s", number, sender, _track(signal), signal.begin - origin)
            arrival = min(seen.begin, waited.end) if waited.end else seen.begin
            yield _end_of_arrow("f", number, rank.rank, _track(waited), arrival - origin)


def _last_before(signals: list[tuple[int, int, Event]], seen: Event) -> tuple[int, int, Event] | None:
    index = bisect.bisect_right(signals, seen.begin, key=lambda signal: signal[0])
    for signal in reversed(signals[:index]):
        if signal[2].op == _ADD or signal[2].value == seen.value:
            return signal
    return None


def _end_of_arrow(phase: str, number: int, rank: int, track: int, at: int) -> dict[str, Any]:
    end = {"ph": phase, "id": number, "name": "signal", "cat": "signal", "pid": rank, "tid": track}
    return {**end, "ts": _microseconds(at), **({"bp": "e"} if phase == "f" else {})}
