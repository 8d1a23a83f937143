"""Says what is going on while it goes on, and at the end what ran where, how long and how it ended."""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import nox
from nox.command import CommandFailed


@dataclass
class Step:
    """One row of the summary. Who runs the step may set `result` to say more than `ok`."""

    session: str
    name: str
    result: str = "ok"
    seconds: float = 0.0


_steps: list[Step] = []
_places: dict[str, None] = {}


@contextmanager
def step(session: str, name: str) -> Iterator[Step]:
    """Announces a step, times it, and puts it into the summary whatever happens."""
    if not _steps:
        atexit.register(_print_summary)
    row = Step(session, name)
    _steps.append(row)
    print(f"\n── {session}: {name}", flush=True)
    start = time.monotonic()
    try:
        yield row
    except BaseException:
        if row.result == "ok":
            row.result = "FAILED"
        elif "FAILED" not in row.result:
            row.result += ", FAILED"
        raise
    finally:
        row.seconds = time.monotonic() - start


def run_each(session: nox.Session, *parts: Callable[[], None]) -> None:
    """Runs every part, also after one has failed; the session fails at the end if any did."""
    before = len(_steps)
    for part in parts:
        try:
            part()
        except CommandFailed as failure:
            note(str(failure))
    failed = [row.name for row in _steps[before:] if "FAILED" in row.result]
    if failed:
        session.error(f"failed: {', '.join(failed)}")


def note(text: str) -> None:
    """One line of information within a step."""
    print(f"   {text}", flush=True)


def ran_in(place: str) -> None:
    """Names an environment that steps run in, for the summary."""
    _places[place] = None


def _print_summary() -> None:
    sessions = max(len("session"), *(len(row.session) for row in _steps))
    names = max(len("step"), *(len(row.name) for row in _steps))
    rule = "─" * (sessions + names + 40)
    print(f"\n{rule}")
    print(f" {'session':{sessions}}  {'step':{names}}  {'time':>8}  result")
    for row in _steps:
        print(f" {row.session:{sessions}}  {row.name:{names}}  {row.seconds:6.1f} s  {row.result}")
    for place in _places:
        print(f" in {place}, {len(os.sched_getaffinity(0))} cores")
    print(rule, flush=True)
