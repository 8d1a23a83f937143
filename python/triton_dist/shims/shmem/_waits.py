"""Waits for words of the own symmetric heap, and tests of them.

A wait ends with an error when all other ranks have ended: nobody is left to write the word.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable
from typing import Any

from triton_dist.runtime import job

from ._arguments import comparison, integer, stream_key
from ._kinds import KINDS, Kind
from ._types import CmpOp

__all__ = [
    "aclshmem_signal_wait_until",
    "aclshmemx_signal_wait_until_on_stream",
]

_INT32 = next(kind for kind in KINDS if kind.name == "int32")
_SIZE_MAX = (1 << 64) - 1
_TRUE: dict[CmpOp, Callable[[float, float], bool]] = {
    CmpOp.CMP_EQ: operator.eq,
    CmpOp.CMP_NE: operator.ne,
    CmpOp.CMP_GT: operator.gt,
    CmpOp.CMP_GE: operator.ge,
    CmpOp.CMP_LT: operator.lt,
    CmpOp.CMP_LE: operator.le,
}
# A wait for any of several words sleeps on one of them and looks at the others this often.
_ANY_SLICE_NS = 1_000_000

FAMILIES: dict[str, Callable[..., Any]] = {}
"""Functions that exist once for each type, by name."""


def aclshmem_signal_wait_until(sig_addr: int, cmp: CmpOp | int, cmp_val: int) -> int:
    """Waits until the int32 at `sig_addr`, of this rank's symmetric heap, compares with `cmp_val`; returns it.

    Raises:
        ValueError: it is not in the symmetric heap, or `cmp` is no comparison.
        RuntimeError: all other ranks have ended.
    """
    return int(_wait_one(_INT32, "aclshmem_signal_wait_until", sig_addr, cmp, cmp_val))


def aclshmemx_signal_wait_until_on_stream(sig_addr: int, cmp: CmpOp | int, cmp_val: int, stream: int) -> None:
    """As `aclshmem_signal_wait_until`, in the order of a stream: the stream waits, the host goes on."""
    name = "aclshmemx_signal_wait_until_on_stream"
    key = stream_key(stream, name)
    if key is None:
        _wait_one(_INT32, name, sig_addr, cmp, cmp_val)
        return
    address, value = integer(sig_addr, "sig_addr", name), _INT32.to_raw(cmp_val, name)
    job.require(name).wait_until_on_stream(address, _INT32.size, comparison(cmp, name), value, name, key)


def _wait_one(kind: Kind, function: str, address: int, cmp: CmpOp | int, value: float) -> float:
    current = job.require(function)
    address, compare = integer(address, "ivar", function), comparison(cmp, function)
    raw = kind.to_raw(value, function)
    if kind.code in ("=b", "=h", "=i", "=q"):
        current.wait_until(address, kind.size, compare, raw, function)
        return kind.read(address)
    current.heap.check_range(address, kind.size, current.rank, function, align=kind.size)
    holds = _TRUE[compare]
    wanted = kind.from_raw(raw)
    with current.waiting():
        while True:
            seen = kind.raw(address)
            if holds(kind.from_raw(seen), wanted):
                return kind.from_raw(seen)
            current.wait_for_change(address, kind.size, seen, function)


class _Several:
    """Words of a wait or test for several: element `index` is awaited unless the mask excludes it."""

    def __init__(
        self, kind: Kind, function: str, ivars: int, nelems: int, status: int, cmp: CmpOp | int, values: Any
    ) -> None:
        self.job = job.require(function)
        self.function = function
        self._kind = kind
        self._address = integer(ivars, "ivars", function)
        count = integer(nelems, "nelems", function)
        self.job.heap.check_range(self._address, count * kind.size, self.job.rank, function, align=kind.size)
        mask = integer(status, "status", function)
        excluded = (ctypes.c_int32 * count).from_address(mask) if mask else [0] * count
        self.active = [index for index in range(count) if not excluded[index]]
        self._holds = _TRUE[comparison(cmp, function)]
        if isinstance(values, _Vector):
            source = integer(values.address, "cmp_values", function)
            self._values = [kind.read(source + index * kind.size) for index in range(count)]
        else:
            self._values = [kind.from_raw(kind.to_raw(values, function))] * count

    def met(self) -> tuple[list[int], tuple[int, int] | None]:
        """Indices of the elements that hold, and (index, bits) of the first that does not."""
        met: list[int] = []
        unmet: tuple[int, int] | None = None
        for index in self.active:
            raw = self._kind.raw(self._address + index * self._kind.size)
            if self._holds(self._kind.from_raw(raw), self._values[index]):
                met.append(index)
            elif unmet is None:
                unmet = index, raw
        return met, unmet

    def wait(self, for_all: bool) -> list[int]:
        """Waits until one element holds, or all of them; returns those that do."""
        with self.job.waiting():
            while True:
                met, unmet = self.met()
                if unmet is None or (met and not for_all):
                    return met
                address = self._address + unmet[0] * self._kind.size
                slice_ns = job.SLICE_NS if for_all or len(self.active) == 1 else _ANY_SLICE_NS
                self.job.wait_for_change(address, self._kind.size, unmet[1], self.function, slice_ns)


class _Vector:
    """A value to compare with for each element, as an array at an address."""

    def __init__(self, address: int) -> None:
        self.address = address


def _write_size(address: int, value: int) -> None:
    ctypes.c_uint64.from_address(address).value = value


def _write_int(address: int, value: int) -> None:
    ctypes.c_int32.from_address(address).value = value


def _write_indices(address: int, indices: list[int]) -> None:
    for position, index in enumerate(indices):
        _write_size(address + 8 * position, index)


# ----------------------------------------------------------------------------------------- families by type


def _make(name: str, function: Callable[..., Any], text: str) -> None:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    FAMILIES[name] = function


def _make_single(kind: Kind) -> None:
    prefix = f"aclshmem_{kind.name}"

    def wait_until(ivar: int, cmp: CmpOp | int, cmp_val: float) -> None:
        _wait_one(kind, f"{prefix}_wait_until", ivar, cmp, cmp_val)

    def wait(ivar: int, cmp_val: float) -> None:
        _wait_one(kind, f"{prefix}_wait", ivar, CmpOp.CMP_NE, cmp_val)

    def test(ivar: int, cmp: CmpOp | int, cmp_value: float, res_out: int) -> None:
        met, _ = _Several(kind, f"{prefix}_test", ivar, 1, 0, cmp, cmp_value).met()
        _write_int(res_out, len(met))

    word = f"the {kind.name} at symmetric address `ivar`"
    _make(f"{prefix}_wait_until", wait_until, f"Waits until {word} compares with `cmp_val`.")
    _make(f"{prefix}_wait", wait, f"Waits until {word} is not `cmp_val`.")
    _make(f"{prefix}_test", test, f"Writes to the int at `res_out` whether {word} compares with `cmp_value`.")


def _make_several(kind: Kind, vector: bool) -> None:
    prefix, suffix = f"aclshmem_{kind.name}", "_vector" if vector else ""
    values = "with the values at `cmp_values`" if vector else "with `cmp_value`"

    def several(function: str, ivars: int, nelems: int, status: int, cmp: CmpOp | int, value: Any) -> _Several:
        return _Several(kind, function, ivars, nelems, status, cmp, _Vector(value) if vector else value)

    def wait_until_all(ivars: int, nelems: int, status: int, cmp: CmpOp | int, cmp_value: Any) -> None:
        several(f"{prefix}_wait_until_all{suffix}", ivars, nelems, status, cmp, cmp_value).wait(for_all=True)

    def wait_until_any(ivars: int, nelems: int, status: int, cmp: CmpOp | int, cmp_value: Any, res_out: int) -> None:
        words = several(f"{prefix}_wait_until_any{suffix}", ivars, nelems, status, cmp, cmp_value)
        met = words.wait(for_all=False)
        _write_size(res_out, met[0] if met else _SIZE_MAX)

    def wait_until_some(
        ivars: int, nelems: int, indices: int, status: int, cmp: CmpOp | int, cmp_value: Any, res_out: int
    ) -> None:
        words = several(f"{prefix}_wait_until_some{suffix}", ivars, nelems, status, cmp, cmp_value)
        met = words.wait(for_all=False)
        _write_indices(indices, met)
        _write_size(res_out, len(met))

    def test_all(ivars: int, nelems: int, status: int, cmp: CmpOp | int, cmp_value: Any, res_out: int) -> None:
        words = several(f"{prefix}_test_all{suffix}", ivars, nelems, status, cmp, cmp_value)
        _write_int(res_out, words.met()[1] is None)

    def test_any(ivars: int, nelems: int, status: int, cmp: CmpOp | int, cmp_value: Any, res_out: int) -> None:
        met, _ = several(f"{prefix}_test_any{suffix}", ivars, nelems, status, cmp, cmp_value).met()
        _write_size(res_out, met[0] if met else _SIZE_MAX)

    def test_some(
        ivars: int, nelems: int, indices: int, status: int, cmp: CmpOp | int, cmp_value: Any, res_out: int
    ) -> None:
        met, _ = several(f"{prefix}_test_some{suffix}", ivars, nelems, status, cmp, cmp_value).met()
        _write_indices(indices, met)
        _write_size(res_out, len(met))

    words = f"of the `nelems` {kind.name} at symmetric address `ivars`, without those that `status` excludes,"
    first = f"the index of the first that does (size_t; SIZE_MAX if none) at `res_out`: {words} compared {values}"
    some = f"the indices of those that do at `indices`, their count at `res_out` (size_t): {words} compared {values}"
    _make(f"{prefix}_wait_until_all{suffix}", wait_until_all, f"Waits until all hold: {words} compared {values}.")
    _make(f"{prefix}_wait_until_any{suffix}", wait_until_any, f"Waits until one holds; {first}.")
    _make(f"{prefix}_wait_until_some{suffix}", wait_until_some, f"Waits until one holds; {some}.")
    _make(f"{prefix}_test_all{suffix}", test_all, f"Whether all hold (int at `res_out`): {words} compared {values}.")
    _make(f"{prefix}_test_any{suffix}", test_any, f"Whether one holds; {first}.")
    _make(f"{prefix}_test_some{suffix}", test_some, f"Which hold; {some}.")


for _kind in KINDS:
    if _kind.waits:
        _make_single(_kind)
        _make_several(_kind, vector=False)
        _make_several(_kind, vector=True)
