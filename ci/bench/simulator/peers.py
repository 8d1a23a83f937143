"""The C++ programs that rows are held against."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

from ci.bench.row import Context


def program(context: Context, name: str, rounds: int) -> Callable[[], float]:
    """Runs program `name` once; the number that it prints."""
    command = [str(context.programs / name), str(rounds)]
    return lambda: float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
