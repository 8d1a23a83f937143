"""The functions of the NPU's math library (`libdevice`), by numpy's."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

_NAME = re.compile(r"__hmf_(\w+?)(f|Dh)?")

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "atan": np.arctan,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "ldexp": lambda x, exponent: x * np.exp2(exponent),
    "log1p": np.log1p,
    "pow": np.power,
    "recip": np.reciprocal,
    "relu": lambda x: np.maximum(x, 0),
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),  # halves go away from zero, as in C
    "tan": np.tan,
    "tanh": np.tanh,
}


def find(symbol: str) -> Callable[..., Any] | None:
    """The function behind `symbol`; None if it is not one of the library. Names end in `f` for 32 bits, `Dh` for 16."""
    match = _NAME.fullmatch(symbol)
    if match is None:
        return None
    return _FUNCTIONS.get(match[1]) or _FUNCTIONS.get(match[1] + (match[2] or ""))
