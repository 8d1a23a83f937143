"""`python -m triton_dist selftest`: the first thing to run on a host, with a report that can be sent back."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import shlex
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from triton_dist import env
from triton_dist.commands import terminal

_EXAMPLES = """\
examples:
  {program}                              on the NPUs of this host, else on simulated ones
  {program} --npus 0,1                   on these; `python -m triton_dist npus` shows which there are
  {program} --npus sim:2                 on two simulated ones, whatever the host has
  {program} --timeout 300                where the first launch takes long
  {program} --report /tmp/selftest.txt   into this file
  {program} --json                       for programs

steps:
{steps}

A step that needs one that failed is skipped. Whatever hangs is ended; its stacks are in the report.

The report has versions, pins, environment variables, what npu-smi says, and each step's output and tracebacks. What
variables with TOKEN, SECRET or PASSWORD in their names hold is left out.

exit codes:
  0  no step failed; some may have been skipped for want of something, such as a second NPU
  1  a step failed, or the report could not be written
  2  wrong usage
"""
_NPUS_HELP = "auto, COUNT, a LIST such as 0,2,5-7, or sim:COUNT, as pytest's --npus takes it (default: auto)"
_TIMEOUT_HELP = "how long a program or ranks that a step waits for may take (default: %(default)g)"


def main(arguments: list[str], program: str) -> int:
    """Runs the command; see _EXAMPLES for its exit codes."""
    # Of the package, these import more than a second's worth of others: nobody who mistypes waits for them.
    from triton_dist.commands.selftest.steps import STEPS

    steps = "\n".join(f"  {step.name:13}{step.summary}" for step in STEPS)
    parser = argparse.ArgumentParser(
        prog=program,
        description="Tries what a distributed kernel needs, step by step, and writes a report that can be sent back.",
        epilog=_EXAMPLES.format(program=program, steps=steps),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--npus", metavar="NPUS", default="auto", help=_NPUS_HELP)
    parser.add_argument("--allow-busy-npus", action="store_true", help="use NPUs that other programs are on, too")
    parser.add_argument("--timeout", type=_seconds, default=120.0, metavar="SECONDS", help=_TIMEOUT_HELP)
    parser.add_argument("--report", type=Path, metavar="FILE", help="where the report goes (default: a new file here)")
    parser.add_argument("--json", action="store_true", help="print JSON with all that the report has")
    parsed = parser.parse_args(arguments)

    from triton_dist.testing.choice import Wish

    try:
        wish = Wish.of(parsed.npus)
    except ValueError as error:
        parser.error(str(error))
    file = parsed.report or Path(_file_name())
    try:
        # Before all the work, and nobody takes an old report for this one's.
        file.write_text("")
        signals = _Signals()
        with signals.heard():
            return _run(parsed, wish, file, shlex.join([*program.split(), *arguments]), signals)
    except _EndedError as end:
        name = signal.Signals(end.signal).name
        print(f"{program}: ended by {name}; what was found until then is in {file.absolute()}", file=sys.stderr)
        return 128 + end.signal
    except OSError as error:
        if error.filename not in (str(file), None):
            raise
        print(f"{program}: the report cannot be written to {file}: {error.strerror}", file=sys.stderr)
        return 1


def _run(parsed: argparse.Namespace, wish: Any, file: Path, command: str, signals: _Signals) -> int:
    from triton_dist.commands.selftest import facts, report, step, steps
    from triton_dist.commands.selftest.patience import patiently
    from triton_dist.commands.selftest.ranks import Ranks

    paint = terminal.paint if sys.stdout.isatty() else terminal.plain
    progress = _Progress(signals)
    outcomes: list[step.Outcome] = []
    begin = time.monotonic()
    progress.begin("host")
    known = patiently(facts.gather, progress.look)
    progress.end()
    with closing(Ranks(parsed.timeout, progress.look)) as ranks:
        test = steps.SelfTest(wish, parsed.allow_busy_npus, parsed.timeout, progress.look, ranks)
        try:
            for outcome in step.run(steps.STEPS, test, progress.begin):
                progress.end()
                outcomes.append(outcome)
                # After each, so that something is there to be sent if the host goes down with the next.
                file.write_text(report.as_text(command, known, outcomes, complete=len(outcomes) == len(steps.STEPS)))
                if not parsed.json:
                    _print(report.summary(outcome), outcome.state, paint)
        finally:
            env.apply(test.before)
    if parsed.json:
        print(report.as_json(command, known, outcomes))
        print(f"report: {file.absolute()}", file=sys.stderr)
    else:
        print(f"{report.counted(outcomes)} ({time.monotonic() - begin:.1f} s)")
        print(f"report: {file.absolute()}")
    return int(any(outcome.state == step.FAILED for outcome in outcomes))


_STYLES = {"FAIL": "red", "skipped": "dim"}


def _print(lines: Sequence[str], state: str, paint: Any) -> None:
    for line in lines:
        print(paint(_STYLES[state], line) if state in _STYLES else line, flush=True)


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < (seconds := float(text)) < float("inf"):
            return seconds
    raise argparse.ArgumentTypeError(f"{text} is not a number of seconds greater than 0")


def _file_name() -> str:
    now = datetime.datetime.now()
    return f"selftest-{socket.gethostname()}-{now:%Y%m%d-%H%M%S}.txt"


class _Progress:
    """A line on the terminal that says which step has been running for how long."""

    def __init__(self, signals: _Signals) -> None:
        self._signals = signals
        self._step, self._begin, self._shown = "", 0.0, 0

    def begin(self, step: str) -> None:
        """A step has begun."""
        self._signals.check()
        self._step, self._begin = step, time.monotonic()

    def look(self) -> None:
        """To be called now and then while a step waits. Raises _EndedError if a signal wants an end."""
        self._signals.check()
        seconds = int(time.monotonic() - self._begin)
        if sys.stderr.isatty() and seconds >= terminal.Progress.AFTER and seconds != self._shown:
            print(f"\r {self._step}: {seconds} s ...", end="", file=sys.stderr, flush=True)
            self._shown = seconds

    def end(self) -> None:
        """Take the line away."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._shown = 0


class _EndedError(BaseException):
    """A signal wants this process to end.

    Attributes:
        signal: its number.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = number


class _Signals:
    """Ctrl-C and SIGTERM, heard of where a step waits: never between the start of a process and its being known."""

    _NUMBERS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self._seen = 0

    def check(self) -> None:
        """Raises _EndedError if one has come."""
        if self._seen:
            raise _EndedError(self._seen)

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Note them for the block, instead of what they do otherwise."""
        before = {number: signal.signal(number, self._note) for number in self._NUMBERS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._seen = number
