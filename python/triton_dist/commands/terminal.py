"""Text for a terminal: colours, and columns of a width."""

from __future__ import annotations

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
