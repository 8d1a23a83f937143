"""What a deadlock looks like: one table of who waits for what, the same on every rank, with a hint where one is due."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TITLE = "no rank can go on"
"""What the text of every DeadlockError begins with."""

_SLOT_BYTES = 64

Wait = dict[str, Any]
"""What one program or host call waits for; tdist_sim.h (tdist_rt_describe_waits) has the keys."""


class DeadlockError(RuntimeError):
    """No rank of the job can go on. The text is the table of who waits for what, the same on every rank."""

    __module__ = "triton_dist"


@dataclass(frozen=True)
class RankState:
    """A rank of the job that cannot go on.

    Attributes:
        rank: its number.
        waits: what its programs and its host wait for.
        host: what its host does, in words.
        has_left: it has ended, or its part of the job has.
        finished: its launch that has ended last (`kernel`), and how long ago (`seconds`).
    """

    rank: int
    waits: Sequence[Wait]
    host: str
    has_left: bool = False
    finished: Mapping[str, Any] | None = None


def verdict(ranks: Sequence[RankState], replay: str = "") -> str:
    """The text of the error that all ranks raise; `replay` says how to have the same choices made again."""
    waits = [wait for rank in ranks for wait in rank.waits]
    since = min((wait["seconds"] for wait in waits), default=0.0)
    title = f"{TITLE} ({_count(len(ranks), 'rank')}, {since:.2f} s after the last progress)"
    return "\n".join([title, "", table(ranks), *_hint_lines(ranks), *([f"replay: {replay}"] if replay else [])])


def suspicion(ranks: Sequence[RankState]) -> str:
    """The same of ranks that may still go on: host code runs on some of them."""
    return "\n".join([table(ranks), *_hint_lines(ranks)])


def table(ranks: Sequence[RankState]) -> str:
    """One line for each program and host call that waits, and for each rank of which none does."""
    rows: list[tuple[str, ...]] = [
        ("rank", "program", "kernel", "at", "waits for", "wants", "has", "last written by", "for")
    ]
    for rank in ranks:
        for wait in rank.waits:
            rows.append((str(rank.rank), *_row(wait)))
        if rank.finished is not None and not any(wait["kernel"] for wait in rank.waits):
            rows.append((str(rank.rank), *_finished_row(rank.rank, rank.finished, ranks)))
        if not rank.waits:
            rows.append((str(rank.rank), "host", "", "", rank.host, "", "", "", ""))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(f" {line}".rstrip() for line in lines)


def _row(wait: Wait) -> tuple[str, ...]:
    program, loops = wait["program"], wait.get("loops")
    return (
        f"({','.join(map(str, program))})" if program is not None else "host",
        wait["kernel"] or "",
        _place(wait) + (" " if wait["file"] else "") + wait["primitive"],
        _target(wait),
        "" if loops else f"{wait['compare']} {wait['wanted']}",
        "" if loops else str(wait["has"]),
        _writer(wait.get("last_writer")) if wait["pe_offset"] is not None else "",
        f"{wait['seconds']:.2f} s",
    )


def _finished_row(number: int, finished: Mapping[str, Any], ranks: Sequence[RankState]) -> tuple[str, ...]:
    """The kernel that rank `number` has run last, and the signal of it that others wait beside."""
    ago = f"ended {finished['seconds']:.2f} s ago"
    for rank in ranks:
        for wait in rank.waits:
            for write in filter(None, (wait.get("last_writer"), *(wait.get("near") or []))):
                if write["rank"] == number and write["kernel"] == finished["kernel"]:
                    where = f"{_place(write)} {write['primitive']}"
                    wrote = f"rank {rank.rank}'s {_word(wait, write['pe_offset'])}"
                    return "finished", finished["kernel"], where, f"nothing: {ago}, wrote {wrote}", "", "", "", ""
    return "finished", finished["kernel"], "", f"nothing: {ago}", "", "", "", ""


def _word(wait: Wait, offset: int) -> str:
    """A word of the allocation that `wait` is about."""
    if not wait.get("object"):
        return f"heap+{offset} B"
    return f"{wait['object']}+{offset - wait['pe_offset'] + wait['object_offset']} B"


def _place(item: Wait) -> str:
    return f"{os.path.basename(item['file'])}:{item['line']}" if item["file"] else ""


def _target(wait: Wait) -> str:
    """The symmetric address: by the kernel's argument and the slot where these are known."""
    if wait.get("loops"):
        return "what it looks at, spinning by itself"
    if wait["pe_offset"] is None:
        missing = wait["missing_pes"]
        return "all programs of its launch" if missing is None else f"{_ranks(missing)} to come to it"
    allocation = wait.get("allocation")
    if wait.get("object") and allocation:
        slot, rest = divmod(wait["object_offset"], _SLOT_BYTES)
        name = f"{wait['object']}[{slot}]" if rest == 0 else f"{wait['object']}+{wait['object_offset']} B"
        return f"{name}  (+{wait['pe_offset'] - allocation['offset']} B of {allocation['bytes']})"
    return f"heap+{wait['pe_offset']} B"


def _writer(writer: Wait | None) -> str:
    if writer is None:
        return "never"
    who = f"{writer['kernel']} {_place(writer)}" if writer["kernel"] else writer["primitive"]
    what = f"+= {writer['value']}" if writer["add"] else f"= {writer['value']}"
    return f"rank {writer['rank']} {who} ({what})"


# ------------------------------------------------------------------------------------------- hints


def _hint_lines(ranks: Sequence[RankState]) -> list[str]:
    hints = list(dict.fromkeys(hint for rank in ranks for wait in rank.waits for hint in _hints(rank, wait, ranks)))
    if not hints and len({rank.rank for rank in ranks for wait in rank.waits if _is_untouched(wait)}) > 1:
        hints = [
            "each of these ranks waits for a signal that another one gives only behind its own wait: crossed order"
        ]
    return ["", *(f"hint: {hint}" for hint in hints)] if hints else []


def _is_untouched(wait: Wait) -> bool:
    return wait["pe_offset"] is not None and wait.get("last_writer") is None


def _hints(rank: RankState, wait: Wait, ranks: Sequence[RankState]) -> list[str]:
    if wait["pe_offset"] is None:
        return _barrier_hints(wait, ranks)
    hints = []
    last, near = wait.get("last_writer"), wait.get("near") or []
    if last is not None:
        hints.append(
            f"{_writer_place(last)} has {'added' if last['add'] else 'set'} {last['value']} there, "
            f"and rank {rank.rank} waits for {wait['compare']} {wait['wanted']}: another value is wanted"
        )
    elif near:
        hints.append(_near_hint(rank, wait, near))
    if wait["queued"]:
        hints.append(
            f"{_count(wait['queued'], 'program')} of {wait['kernel']} on rank {rank.rank} have not begun, since all "
            "cores are taken by programs that wait: if one of those gives the signal, launch no more programs than "
            "there are cores, or let each program give its signal before it waits"
        )
    if not hints and wait["kernel"]:
        hints += [f"rank {other.rank} has left and gives no signal any more" for other in ranks if other.has_left]
    return hints


def _near_hint(rank: RankState, wait: Wait, near: Sequence[Wait]) -> str:
    """A signal has come, to another word of the same allocation."""
    allocation, width = wait["allocation"]["offset"], wait["width"]
    ours = wait["pe_offset"] - allocation
    base = wait["pe_offset"] - wait.get("object_offset", ours)
    crooked = next((write for write in near if (write["pe_offset"] - base) % _SLOT_BYTES), None)
    if crooked is not None:
        return (
            f"{_writer_place(crooked)} wrote byte {crooked['pe_offset'] - allocation} of rank {rank.rank}'s, and "
            f"{wait['primitive']} reads every {_SLOT_BYTES} bytes: a slot is {_SLOT_BYTES // width} int{8 * width} "
            f"elements, not {max(crooked['pe_offset'] - base, 1) // width}"
        )
    written, awaited = ((item["pe_offset"] - base) // _SLOT_BYTES for item in (near[0], wait))
    return f"{_writer_place(near[0])} wrote slot {written} of rank {rank.rank}'s, and slot {awaited} is waited for"


def _barrier_hints(wait: Wait, ranks: Sequence[RankState]) -> list[str]:
    missing = wait["missing_pes"] or []
    return [
        f"rank {other.rank} does not come to {wait['primitive']}: " + ("it has left" if other.has_left else other.host)
        for other in ranks
        if other.rank in missing and not any(its["kernel"] for its in other.waits)
    ]


def _writer_place(writer: Wait) -> str:
    where = f" at {_place(writer)}" if writer["file"] else ""
    return f"rank {writer['rank']}'s {writer['primitive']}{where}"


def _ranks(numbers: Sequence[int]) -> str:
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
