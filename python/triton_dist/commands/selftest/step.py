"""What a step of the self-test is, and in which order steps run and are left out."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

OK, FAILED, SKIPPED = "ok", "FAIL", "skipped"

Context = TypeVar("Context")


@dataclass(frozen=True)
class Done:
    """What a step that went well has to say.

    Attributes:
        what: in one line.
        details: further texts by title, for the report.
    """

    what: str
    details: Mapping[str, str] = field(default_factory=dict)


class StepFailedError(Exception):
    """A step that found something wrong; the text says in one line what.

    Attributes:
        mend: what to do next, in one line.
        details: further texts by title, for the report.
    """

    def __init__(self, why: str, mend: str, details: Mapping[str, str] | None = None) -> None:
        super().__init__(why)
        self.mend = mend
        self.details = dict(details or {})


class StepSkippedError(Exception):
    """A step that this host has no means for; the text says in one line which."""


@dataclass(frozen=True)
class Step(Generic[Context]):
    """One step.

    Attributes:
        name: a word.
        summary: what it tries, in a few words.
        run: does it; what it raises, or returns, is the result.
        needs: names of earlier steps without which it makes no sense.
    """

    name: str
    summary: str
    run: Callable[[Context], Done]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What came of a step.

    Attributes:
        name, summary: of the step.
        state: `OK`, `FAILED` or `SKIPPED`.
        what: what was found, why it failed, or why it was left out, in one line.
        mend: what to do next; empty where it did not fail.
        seconds: how long it took.
        details: further texts by title.
    """

    name: str
    summary: str
    state: str
    what: str
    mend: str = ""
    seconds: float = 0.0
    details: Mapping[str, str] = field(default_factory=dict)


def run(
    steps: Sequence[Step[Context]], context: Context, begins: Callable[[str], None] = lambda name: None
) -> Iterator[Outcome]:
    """What comes of each of `steps`, as they end; `begins` is told the name of one that is run."""
    # Each step that cannot be built upon, and the failed one that this goes back to.
    lost: dict[str, str] = {}
    for step in steps:
        culprits = [lost[need] for need in step.needs if need in lost]
        if culprits:
            lost[step.name] = culprits[0]
            yield Outcome(step.name, step.summary, SKIPPED, f"it needs the step {culprits[0]}, which failed")
            continue
        begins(step.name)
        outcome = _outcome(step, context)
        if outcome.state == FAILED:
            lost[step.name] = step.name
        yield outcome


def _outcome(step: Step[Context], context: Context) -> Outcome:
    begin = time.monotonic()
    state, mend = OK, ""
    try:
        done = step.run(context)
        what, details = done.what, done.details
    except StepSkippedError as reason:
        state, what, details = SKIPPED, str(reason), {}
    except StepFailedError as failure:
        state, what, mend, details = FAILED, str(failure), failure.mend, failure.details
    except Exception as error:  # whatever is wrong with the host: the report is made all the same
        line = " ".join(str(error).split())
        state, what, mend = FAILED, f"{type(error).__name__}: {line}", "the report has the traceback: send it back"
        details = {"traceback": traceback.format_exc()}
    return Outcome(step.name, step.summary, state, what, mend, time.monotonic() - begin, details)
