"""What a check of the doctor finds."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warn", "FAIL"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        level: `ok`; `warn`: it works, or works elsewhere, but may surprise; `FAIL`: it must be mended.
        what: what was found, in one line.
        why: what would come of it, in one line; empty where all is well.
        mend: what to do; empty where all is well.
        fix: command lines that mend it and can do no harm: what `--fix` runs. `mend` shows them.
    """

    level: Level
    what: str
    why: str = ""
    mend: str = ""
    fix: tuple[tuple[str, ...], ...] = ()


def ok(what: str) -> Finding:
    return Finding("ok", what)


def warn(what: str, why: str, mend: str) -> Finding:
    return Finding("warn", what, why, mend)


def fail(what: str, why: str, mend: str) -> Finding:
    return Finding("FAIL", what, why, mend)


def fixable(level: Level, what: str, why: str, *commands: Sequence[str]) -> Finding:
    """A finding that commands mend."""
    mend = " && ".join(shlex.join(command) for command in commands)
    return Finding(level, what, why, mend, tuple(tuple(command) for command in commands))
