"""Names that a name resembles."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# One wrong, missing, doubled or swapped letter in a name of the usual length, or a short word left out of a long one.
# Names that their owners really have differ from each other by more.
_A_TYPO = 0.88


def likely_meant(name: str, names: Iterable[str]) -> str | None:
    """The one of `names` that somebody who wrote `name` most likely meant, or None where it resembles none."""
    return next(iter(difflib.get_close_matches(name, list(names), n=1, cutoff=_A_TYPO)), None)


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """Up to three of `names` that come near, best first; for somebody who asks for a name."""
    return difflib.get_close_matches(name.upper(), list(names), n=3, cutoff=0.6)
