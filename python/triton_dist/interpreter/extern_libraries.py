"""Functions of a user's own library that a kernel calls (`dl.extern_call`)."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

_TYPES = {
    "int1": ctypes.c_bool,
    "int8": ctypes.c_int8,
    "int16": ctypes.c_int16,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "uint8": ctypes.c_uint8,
    "uint16": ctypes.c_uint16,
    "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64,
    "fp32": ctypes.c_float,
    "fp64": ctypes.c_double,
}


def load(path: str, symbol: str, operands: Sequence[Any], result: Any) -> Callable[..., Any]:
    """Function `symbol` of the shared library at `path`, on arrays of one element each.

    Raises:
        NotImplementedError: there is no library, or a type cannot be passed.
        OSError, AttributeError: the library cannot be loaded, or has no such symbol.
    """
    if not path:
        raise NotImplementedError(
            f"{symbol} is not available in Triton's interpreter: it is in no library on this host"
        )
    for kind in (*operands, result):
        if kind.name not in _TYPES:
            raise NotImplementedError(f"{symbol}: {kind.name} cannot be passed to a library in Triton's interpreter")
    function = getattr(_library(path), symbol)
    function.argtypes = [_TYPES[kind.name] for kind in operands]
    function.restype = _TYPES[result.name]
    return lambda *arrays: [function(*(array.item() for array in arrays))]


@functools.cache
def _library(path: str) -> ctypes.CDLL:
    return ctypes.CDLL(path)
