"""bfloat16 for numpy, which has none: Triton's interpreter keeps its bits in uint16 and would compute with these."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import triton.language as tl
from triton.runtime import interpreter as stock
from triton.runtime.interpreter import TensorHandle


def among(*handles: TensorHandle) -> bool:
    """Whether one of them is bfloat16."""
    return any(_is_bfloat16(handle) for handle in handles)


def widen(handle: TensorHandle) -> npt.NDArray[Any]:
    """The numbers: float32 for bfloat16, which loses nothing, else as they are."""
    data: npt.NDArray[Any] = handle.data
    # Comparisons of bfloat16 give truth values under their operands' type.
    if not _is_bfloat16(handle):
        return data
    return (data.astype(np.uint32) << 16).view(np.float32)


def handle(numbers: npt.NDArray[Any], kind: Any) -> TensorHandle:
    """A handle of the scalar type `kind` with these numbers, rounded to the nearest even bfloat16 if that is it."""
    if kind != tl.bfloat16 or numbers.dtype == np.bool_:
        kept = numbers if numbers.dtype == np.bool_ else numbers.astype(stock._get_np_dtype(kind))
        return TensorHandle(kept, kind)
    bits = numbers.astype(np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    quiet = (bits >> 16) | 0x40  # rounding could make an infinity of a NaN
    return TensorHandle(np.where(np.isnan(numbers), quiet, rounded).astype(np.uint16), kind)


def _is_bfloat16(handle: TensorHandle) -> bool:
    return bool(handle.dtype.scalar == tl.bfloat16 and handle.data.dtype == np.uint16)
