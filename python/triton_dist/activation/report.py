"""One line on stderr in place of a traceback that would end somebody else's import."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

# What has been reported in this process, for those whose standard error nobody reads.
said: list[str] = []


@contextmanager
def reported(consequence: str) -> Iterator[None]:
    """Turns any error of the block into one line: `triton-dist: <consequence>: <error>`."""
    try:
        yield
    except Exception as error:
        text = " ".join(str(error).split()) or type(error).__name__
        said.append(f"{consequence}: {text}")
        print(f"triton-dist: {said[-1]}", file=sys.stderr, flush=True)
