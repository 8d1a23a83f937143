"""The command lines with which triton-ascend runs the NPU's compiler: adding to them, and seeing what comes of them.

triton-ascend makes them inside its last stage, where it calls `subprocess.run`. Its module gets a `subprocess` that
passes everything on; while a `Tap` is open in the same thread or task, the compiler's command line has more flags.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Tap:
    """What is added to the compiler's command line, and how it went.

    Attributes:
        added: flags, behind those of triton-ascend.
        command: the whole command line; empty as long as the compiler has not been run.
        stderr: what the compiler printed there.
    """

    added: Sequence[str] = ()
    command: list[str] = field(default_factory=list)
    stderr: str = ""


_open: ContextVar[tuple[Tap, ...]] = ContextVar("triton_dist_taps", default=())


class _Subprocess:
    """The module `subprocess` with another `run`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)

    @staticmethod
    def run(command: Any, *arguments: Any, **options: Any) -> subprocess.CompletedProcess[Any]:
        """As subprocess.run."""
        taps = _open.get()
        if not taps or not _compiles(command):
            return subprocess.run(command, *arguments, **options)
        command = [*map(str, command), *(flag for tap in taps for flag in tap.added)]
        stderr: bytes | str | None = None
        try:
            done = subprocess.run(command, *arguments, **options)
            stderr = done.stderr
        except subprocess.CalledProcessError as error:
            stderr = error.stderr
            raise
        finally:
            for tap in taps:
                tap.command = command
                tap.stderr = stderr.decode(errors="replace") if isinstance(stderr, bytes) else stderr or ""
        return done


def _compiles(command: Any) -> bool:
    """Whether it is the compiler that is run, and to compile: it is asked for its --help too."""
    if not isinstance(command, (list, tuple)) or "-o" not in command:
        return False
    return Path(str(command[0])).name.startswith(("bishengir-compile", "npuc"))


def watch(stock: dict[str, Any]) -> None:
    """Let taps see what triton-ascend's module with the namespace `stock` runs. Again, it changes nothing."""
    if not isinstance(stock["subprocess"], _Subprocess):
        stock["subprocess"] = _Subprocess()


@contextmanager
def tapped(tap: Tap) -> Iterator[Tap]:
    """Open `tap` for the block."""
    token = _open.set((*_open.get(), tap))
    try:
        yield tap
    finally:
        _open.reset(token)
