"""Programs that a step runs: ended with all that they have started when their time is over."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import psutil

_LOOK = 0.05
# Seconds for a killed program to go. One that is stuck in a driver does not, and nobody waits for it.
_TIME_TO_DIE = 2.0


@dataclass(frozen=True)
class Ended:
    """How a program ended.

    Attributes:
        status: its exit status, negative for a signal; None if its time was over.
        stdout, stderr: what it printed.
        hung: command lines of the processes that were there when its time was over.
    """

    status: int | None
    stdout: str
    stderr: str
    hung: tuple[str, ...] = ()


def run(command: Sequence[str], environ: Mapping[str, str], timeout: float, while_waiting: Callable[[], None]) -> Ended:
    """Runs `command` for `timeout` seconds at most; `while_waiting` is called now and then.

    Raises:
        OSError: it cannot be started.
    """
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            # So that whatever it starts can be ended with it.
            start_new_session=True,
        )
        deadline = time.monotonic() + timeout
        hung: tuple[str, ...] = ()
        try:
            while process.poll() is None and time.monotonic() < deadline:
                while_waiting()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_LOOK)
            if process.poll() is None:
                hung = _command_lines(process.pid)
        finally:
            status = process.poll()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_TIME_TO_DIE)
        stdout.seek(0)
        stderr.seek(0)
        printed = [stream.read().decode(errors="replace") for stream in (stdout, stderr)]
    return Ended(status, printed[0], printed[1], hung)


def _command_lines(pid: int) -> tuple[str, ...]:
    with suppress(psutil.Error):
        first = psutil.Process(pid)
        found = []
        for process in (first, *first.children(recursive=True)):
            with suppress(psutil.Error):
                found.append(shlex.join(process.cmdline()))
        return tuple(found)
    return ()
