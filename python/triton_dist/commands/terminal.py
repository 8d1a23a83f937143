"""Text for a terminal: colours, and columns of a width."""

from __future__ import annotations

import sys
import time

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}


def paint(style: str, text: str) -> str:
    """The text in a colour, or bold or dim."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m"


def plain(style: str, text: str) -> str:
    """The text as it is, in place of `paint` where nobody sees colours."""
    del style
    return text


def shortened(text: str, width: int) -> str:
    """The text in `width` columns: cut with an ellipsis where it is longer, filled with spaces where it is shorter."""
    return f"{text:{width}}" if len(text) <= width else f"{text[: width - 1]}…"


class Progress:
    """A line on the terminal that says how far the work is, once it takes long enough for somebody to ask."""

    AFTER = 2.0
    """Seconds from which on it is said."""

    def __init__(self, total: int, what: str) -> None:
        self._total, self._what, self._count, self._begin = total, what, 0, time.monotonic()
        self._shown = False

    def done(self) -> None:
        """One more is done."""
        self._count += 1
        if sys.stderr.isatty() and time.monotonic() - self._begin > self.AFTER:
            print(f"\r{self._count} of {self._total} {self._what}", end="", file=sys.stderr, flush=True)
            self._shown = True

    def end(self) -> None:
        """Take the line away."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
