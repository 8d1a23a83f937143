"""Triton's interpreter, extended by what it does not know: other programs and ranks, Ascend's operations, bfloat16."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as stock
from triton.runtime.interpreter import TensorHandle

from triton_dist.interpreter import bfloat16, device_math, extern_libraries, turns
from triton_dist.interpreter.device_calls import CALLS
from triton_dist.language._frontend import LIBRARY

# A program that only loads may wait for what it loads to change.
_LOADS_A_TURN = 64

Grid = tuple[int, int, int]


class Builder(stock.InterpreterBuilder):  # type: ignore[misc]
    """Does at once what other builders emit. One serves all programs of this process: it asks which one runs."""

    def __init__(self) -> None:
        super().__init__()
        self._loads = 0

    @property
    def is_running(self) -> bool:
        """Whether a kernel runs on this thread."""
        return turns.running() is not None

    @property
    def grid_idx(self) -> Grid:
        """Number of the running program."""
        return turns.require("program_id").program

    @property
    def grid_dim(self) -> Grid:
        """Grid of the running program's launch."""
        return turns.require("num_programs").launch.grid

    # ----------------------------------------------------------------------- what spinning programs do

    def create_masked_load(self, *arguments: Any) -> TensorHandle:
        self._loads += 1
        if self._loads % _LOADS_A_TURN == 0:
            turns.spin()
        return super().create_masked_load(*arguments)

    def create_atomic_cas(self, *arguments: Any) -> TensorHandle:
        turns.spin()
        return super().create_atomic_cas(*arguments)

    def create_atomic_rmw(self, *arguments: Any) -> TensorHandle:
        turns.spin()
        return super().create_atomic_rmw(*arguments)

    # ------------------------------------------------------------------------------------ extern calls

    def create_extern_elementwise(
        self,
        library: str,
        path: str,
        symbol: str,
        operands: Sequence[TensorHandle],
        result: Any,
        pure: bool,
    ) -> TensorHandle:
        arrays = [bfloat16.widen(operand) for operand in operands]
        if library == LIBRARY:
            value = CALLS[symbol](*(int(array.item()) for array in arrays))
            return TensorHandle(np.array([value], dtype=stock._get_np_dtype(result)), result)
        function = device_math.find(symbol) if not path else None
        if function is None:
            function = extern_libraries.load(path, symbol, [operand.dtype for operand in operands], result)
        return bfloat16.handle(np.asarray(function(*arrays)), result.scalar)

    # ------------------------------------------------------------------------------ Ascend's operations

    def create_extract_slice(
        self, full: TensorHandle, offsets: Sequence[TensorHandle], sizes: Sequence[int], strides: Sequence[int]
    ) -> TensorHandle:
        return TensorHandle(full.data[_window(offsets, sizes, strides)].copy(), full.dtype.scalar)

    def create_insert_slice(
        self,
        full: TensorHandle,
        part: TensorHandle,
        offsets: Sequence[TensorHandle],
        sizes: Sequence[int],
        strides: Sequence[int],
    ) -> TensorHandle:
        data = np.array(full.data)
        data[_window(offsets, sizes, strides)] = part.data
        return TensorHandle(data, full.dtype.scalar)

    def create_extract_scalar(self, source: TensorHandle, index: Sequence[TensorHandle]) -> TensorHandle:
        return TensorHandle(source.data[tuple(int(i.data.item()) for i in index)].reshape(1), source.dtype.scalar)

    def create_flip(self, source: TensorHandle, dimension: int) -> TensorHandle:
        return TensorHandle(np.flip(source.data, dimension), source.dtype.scalar)

    def create_sort(self, source: TensorHandle, dimension: int, descending: bool) -> TensorHandle:
        values = np.sort(bfloat16.widen(source), axis=dimension)
        return bfloat16.handle(np.flip(values, dimension) if descending else values, source.dtype.scalar)

    def create_annotation(self, *_hint: Any) -> None:
        """Hints for a compiler say nothing here."""

    def get_unit_attr(self) -> None:
        """The value of a hint; see create_annotation."""

    get_bool_attr = get_int32_attr = get_str_attr = get_i64_array_attr = lambda self, value: value

    def create_custom_op_for_inter_core_sync(self, *_event: Any) -> None:
        """The cube and vector halves of a program run as one, in order: there is nobody to wait for."""

    def create_mod(self, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
        return self.binary_op(lhs, rhs, np.fmod)

    # ---------------------------------------------------------------------------------------- bfloat16

    def get_bf16(self, value: float) -> TensorHandle:
        return bfloat16.handle(np.array([value], dtype=np.float32), tl.bfloat16)

    def binary_op(self, lhs: TensorHandle, rhs: TensorHandle, op: Callable[..., Any]) -> TensorHandle:
        if not bfloat16.among(lhs, rhs):
            return super().binary_op(lhs, rhs, op)
        return bfloat16.handle(op(bfloat16.widen(lhs), bfloat16.widen(rhs)), lhs.dtype.scalar)

    def unary_op(self, arg: TensorHandle, op: Callable[..., Any]) -> TensorHandle:
        if not bfloat16.among(arg):
            return super().unary_op(arg, op)
        return bfloat16.handle(op(bfloat16.widen(arg)), arg.dtype.scalar)

    def create_fma(self, x: TensorHandle, y: TensorHandle, z: TensorHandle) -> TensorHandle:
        if not bfloat16.among(x, y, z):
            return super().create_fma(x, y, z)
        return bfloat16.handle(bfloat16.widen(x) * bfloat16.widen(y) + bfloat16.widen(z), z.dtype.scalar)

    def cast_impl(self, source: TensorHandle, kind: Any) -> TensorHandle:
        if not bfloat16.among(source) and kind.scalar != tl.bfloat16:
            return super().cast_impl(source, kind)
        return bfloat16.handle(bfloat16.widen(source), kind.scalar)

    def create_dot(
        self, a: TensorHandle, b: TensorHandle, accumulator: TensorHandle, precision: Any, imprecise: Any
    ) -> TensorHandle:
        if bfloat16.among(a, b):
            a, b = (TensorHandle(bfloat16.widen(operand), tl.float32) for operand in (a, b))
        return super().create_dot(a, b, accumulator, precision, imprecise)


def _window(offsets: Sequence[TensorHandle], sizes: Sequence[int], strides: Sequence[int]) -> tuple[slice, ...]:
    starts = [int(offset.data.item()) for offset in offsets]
    return tuple(
        slice(start, start + (size - 1) * stride + 1, stride or None)
        for start, size, stride in zip(starts, sizes, strides, strict=True)
    )
