"""The words that primitives take (``sig_op="set"`` and so on) and their numbers in the encoding."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Final

from triton.language import core

SIG_OP: Final = {"set": 1, "add": 2}
"""Numbers of the Triton dialect. aclshmem's own SIGNAL_SET and SIGNAL_ADD are 0 and 1."""
COMM_SCOPE: Final = {"gpu": 0, "intra_node": 1, "inter_node": 2}
SCOPE: Final = {"gpu": 0, "cta": 1, "block": 1, "sys": 2}
SEMANTIC: Final = {"relaxed": 0, "acquire": 1, "release": 2, "acq_rel": 3}


def number_of(call: str, argument: str, word: Any, known: Mapping[str, int]) -> int:
    """The number of ``word``.

    Raises:
        TypeError: ``word`` is not a compile-time string.
        ValueError: ``word`` is not among ``known``; the message names the nearest that is.
    """
    value = word.value if isinstance(word, core.constexpr) else word
    allowed = ", ".join(repr(name) for name in known)
    if not isinstance(value, str):
        raise TypeError(f"{call}: {argument} is {value!r}; it must be one of {allowed}")
    if value in known:
        return known[value]
    near = difflib.get_close_matches(value.strip().lower(), known, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    raise ValueError(f"{call}: {argument} is {value!r}; it must be one of {allowed}{hint}")
