"""What became of a test's ranks, in words."""

from __future__ import annotations

import bdb
import os
from collections.abc import Sequence

import pytest
from _pytest.outcomes import Failed

from triton_dist.runtime import deadlock
from triton_dist.testing.ranks.record import JobRecord, RankRecord

_WIDTH = 80
# Of what a host with real NPUs says at a time-out; all of it is among the artefacts.
_MOST_LINES = 40


class RanksFailed(Failed):
    """Ranks of a test failed.

    Attributes:
        record: what became of each rank.
    """

    # As pytest's own outcomes: the short summary at the end of a run has no room for a module's path.
    __module__ = "builtins"

    def __init__(self, message: str, record: JobRecord) -> None:
        super().__init__(message, pytrace=False)
        self.record = record


class DebuggedRanksFailed(RanksFailed, bdb.BdbQuit):
    """Ranks of a test failed, and the user has looked at it: pytest asks for no second debugger after a BdbQuit."""

    __module__ = "builtins"


class RanksTimedOut(RanksFailed):
    """Ranks of a test were still running when their time was over."""

    __module__ = "builtins"


def judge(record: JobRecord) -> None:
    """Does what the ranks did: returns if all returned.

    Raises:
        RanksTimedOut: the job ran into its time-out.
        RanksFailed: ranks failed, died, or only some of them skipped.
        pytest.skip.Exception, pytest.xfail.Exception: all ranks skipped, or ranks that "failed" expected it.
    """
    __tracebackhide__ = True
    if (timed_out := timeout_error(record)) is not None:
        raise timed_out
    failed = _failed(record)
    if failed and all(r.kind == "xfailed" for r in failed):
        pytest.xfail(failed[0].summary)
    if failed:
        kind = DebuggedRanksFailed if any(r.debugged for r in failed) else RanksFailed
        raise kind(_failure_text(record, failed), record)
    if record.broken is not None:
        raise RanksFailed(record.broken, record)
    skipped = [r for r in record.ranks if r.kind == "skipped"]
    if len(skipped) == len(record.ranks):
        raise pytest.skip.Exception(skipped[0].summary, _use_item_location=True)
    if skipped:
        raise RanksFailed(
            f"{_ranks(skipped)} skipped ({skipped[0].summary}), but the others did not: "
            "a test is skipped by all of its ranks or by none",
            record,
        )


def timeout_error(record: JobRecord) -> RanksTimedOut | None:
    """What to raise if the job ran into its time-out."""
    return None if record.timeout is None else RanksTimedOut(_timeout_text(record, record.timeout), record)


def what_to_debug(error: RanksFailed, rank: int) -> str:
    """How the user gets a debugger where ranks failed, if he had none because `rank` did not; "" if he had one."""
    raised = [r.rank for r in _failed(error.record) if r.kind == "failed"]
    if isinstance(error, DebuggedRanksFailed) or not raised:
        return ""
    return f"(no debugger in a rank: rank {rank} did not fail; --pdb-rank={raised[0]} opens it in rank {raised[0]})"


def sections(record: JobRecord) -> list[tuple[str, str]]:
    """Captured output worth showing: (what it is, text), failed ranks first, and only these if there are any."""
    shown = [r for r in record.ranks if r.failed] or record.ranks
    texts = []
    for r in shown:
        texts += [(f"stdout of rank {r.rank}", r.stdout), (f"stderr of rank {r.rank}", r.stderr)]
    return [(name, text) for name, text in texts if text]


# ------------------------------------------------------------------------------------------ failures


def _failed(record: JobRecord) -> list[RankRecord]:
    """Ranks that failed, the first one on top."""
    # A rank that died without a word comes first: others fail for want of it, and may be heard of before.
    return sorted((r for r in record.ranks if r.failed), key=lambda r: (r.kind is not None, r.at, r.rank))


def _failure_text(record: JobRecord, failed: Sequence[RankRecord]) -> str:
    first = failed[0]
    world_size = len(record.ranks)
    parts = [record.broken] if record.broken is not None else []
    parts.append(f"rank {first.rank} of {world_size}: {_what_happened(first)}")
    alike = [r for r in failed if _is_like(r, first)]
    if len(alike) > 1 or _details(first):
        parts += [_rule(f"{_ranks(alike)} of {world_size}" + (", alike" if len(alike) > 1 else "")), _details(first)]
    for other in failed:
        if other not in alike:
            after = f", {(other.at - first.at) * 1e3:.0f} ms later" if other.at and first.at else ""
            told = _without_table_of(first, _details(other))
            parts += [_rule(f"rank {other.rank} of {world_size}{after}"), told or _what_happened(other)]
    parts.append(_rest(record, failed))
    return "\n".join(part for part in parts if part)


def _what_happened(r: RankRecord) -> str:
    if r.kind in ("failed", "xfailed"):
        return r.summary
    after = " after its worker function had returned" if r.kind == "returned" else ""
    if r.signal is not None:
        hint = " (by kill -9, or because memory ran out)" if r.signal.name == "SIGKILL" else ""
        return f"ended by {r.signal.name}{hint}{after}"
    return f"exited with status {os.waitstatus_to_exitcode(r.status or 0)}{after}"


def _is_like(r: RankRecord, other: RankRecord) -> bool:
    return (r.kind, r.summary, r.text, r.signal) == (other.kind, other.summary, other.text, other.signal)


def _details(r: RankRecord) -> str:
    return r.text.rstrip() or without_our_frames(r.crash)


def _without_table_of(first: RankRecord, text: str) -> str:
    """`text` without the table of a deadlock, which is the same on all ranks, if that of `first` shows it."""
    shown, title, table = _details(first).partition(deadlock.TITLE)
    if title and shown and text.endswith(title + table):
        return text.removesuffix(table) + " ... (the table is above)"
    return text


def _rest(record: JobRecord, failed: Sequence[RankRecord]) -> str:
    """One line on the ranks that did not fail."""
    others = [r for r in record.ranks if r not in failed]
    said = []
    for words, some in (
        ("had returned", [r for r in others if r.kind == "returned"]),
        ("had skipped", [r for r in others if r.kind == "skipped"]),
        ("ended while running", [r for r in others if r.kind is None]),
    ):
        if some:
            said.append(f"{_ranks(some)} {words}")
    return f"({'; '.join(said)})" if said else ""


# ----------------------------------------------------------------------------------------- time-outs


def _timeout_text(record: JobRecord, timeout: float) -> str:
    running = [r for r in record.ranks if r.kind is None and r.ended_by_us] or record.ranks
    who = _ranks(running)
    verb = "was" if len(running) == 1 else "were"
    parts = [f"time-out: {who} of {len(record.ranks)} {verb} not done {timeout:g} s after the test got its NPUs"]
    states = [deadlock.RankState(r.rank, r.waits, "did something else") for r in record.ranks]
    if any(state.waits for state in states):
        parts += [_rule("what the ranks waited for, perhaps in vain"), deadlock.suspicion(states)]
    for r in record.ranks:
        parts += [_rule(f"rank {r.rank} of {len(record.ranks)}"), _stacks_of(r)]
    for name, text in record.hardware.items():
        parts += [_rule(name), _end_of(text)]
    return "\n".join(parts)


def _end_of(text: str) -> str:
    lines = text.rstrip().splitlines()
    left_out = len(lines) - _MOST_LINES
    return "\n".join([f"[... {left_out} lines left out ...]"] * (left_out > 0) + lines[-_MOST_LINES:])


def _stacks_of(r: RankRecord) -> str:
    if r.pid is None:
        return "it had not come yet"
    if r.stacks is not None:
        state = {"returned": "its worker function had returned", "skipped": "it had skipped"}.get(r.kind or "", "")
        return state or r.stacks.rstrip()
    if r.status is not None and not r.ended_by_us:
        return "it had exited"
    return without_our_frames(r.crash) or "no answer: not even its signal handlers ran"


# --------------------------------------------------------------------------------------------- words


def _ranks(records: Sequence[RankRecord]) -> str:
    """ "rank 3" or "ranks 0-2, 5"."""
    numbers = sorted(r.rank for r in records)
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][-1] == number - 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    words = [str(span[0]) if len(span) == 1 else f"{span[0]}-{span[-1]}" for span in spans]
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(words)}"


def _rule(title: str) -> str:
    return f" {title} ".center(_WIDTH, "-")


def without_our_frames(text: str) -> str:
    """faulthandler's `text` without our watching thread, and without the way on which a rank came to its worker."""
    here = os.path.join("triton_dist", "testing", "ranks")
    blocks = []
    for block in text.split("\n\n"):
        lines = block.splitlines()
        if any(os.path.join(here, "watcher.py") in line for line in lines):
            continue
        lines = [line for line in lines if here not in line and 'File "<string>"' not in line]
        blocks.append("\n".join(line for line in lines if not line.startswith("Extension modules:")))
    return "\n\n".join(block for block in blocks if block).strip()
