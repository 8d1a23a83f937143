"""One line on stderr in place of a traceback that would end somebody else's import."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reported(consequence: str) -> Iterator[None]:
    """Turns an error of the block into one line: `triton-dist: <consequence>: <error>`."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not stop the import that we are called from
        text = " ".join(str(error).split()) or type(error).__name__
        print(f"triton-dist: {consequence}: {text}", file=sys.stderr, flush=True)
