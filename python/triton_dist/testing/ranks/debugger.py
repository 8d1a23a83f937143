"""pdb in a rank, at the terminal that pytest has: --pdb, and `breakpoint()` where pytest runs alone."""

from __future__ import annotations

import os
import pdb
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

# Asks pytest for its terminal: descriptors to read from and to write to, or None.
Ask = Callable[[str], "tuple[int, int] | None"]


class RankDebugger(pdb.Pdb):
    """pdb on a terminal that is not this process's own."""

    def __init__(self, rank: int, stdin: int, stdout: int) -> None:
        super().__init__(stdin=os.fdopen(stdin, "r"), stdout=os.fdopen(stdout, "w"), nosigint=True)
        self.prompt = f"(Pdb rank {rank}) "


def post_mortem(rank: int, ask: Ask, what: str, traceback: TracebackType | None) -> bool:
    """Lets the user look at where a worker function failed; returns whether there was a terminal for it.

    Args:
        what: the error in a line.
    """
    terminal = ask(what)
    if terminal is None or traceback is None:
        return False
    debugger = RankDebugger(rank, *terminal)
    debugger.reset()
    debugger.interaction(None, traceback)
    debugger.stdout.flush()
    return True


def serve_breakpoints(rank: int, ask: Ask) -> None:
    """Has `breakpoint()` stop here, at pytest's terminal."""
    opened: list[RankDebugger] = []

    def stop(*args: Any, **kwargs: Any) -> None:
        if not opened:
            terminal = ask("breakpoint")
            if terminal is None:
                return
            opened.append(RankDebugger(rank, *terminal))
        opened[0].set_trace(sys._getframe(1))

    sys.breakpointhook = stop
