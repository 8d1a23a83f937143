"""Copies between ranks, and signals: functions on addresses.

On simulated NPUs each of them is complete when it returns, those with `nbi` or `on_stream` in their names too; in the
strict mode a copy with `nbi` is not before the next quiet, fence or barrier.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from triton_dist.runtime import job

from ._arguments import integer, signal_operation, signal_value, stream_key
from ._kinds import KINDS, Kind
from ._types import SignalOp

__all__ = [
    "aclshmem_fence",
    "aclshmem_getmem",
    "aclshmem_getmem_nbi",
    "aclshmem_putmem",
    "aclshmem_putmem_nbi",
    "aclshmem_quiet",
    "aclshmemx_getmem_on_stream",
    "aclshmemx_putmem_on_stream",
    "aclshmemx_putmem_signal",
    "aclshmemx_putmem_signal_nbi",
    "aclshmemx_quiet_on_stream",
    "aclshmemx_signal_op_on_stream",
]

# Signal words of the host API are int32.
_SIGNAL_BYTES = 4
_SIZES = (8, 16, 32, 64, 128)

FAMILIES: dict[str, Callable[..., Any]] = {}
"""Functions that exist once for each type or size, by name."""


def _put(function: str, dst: int, src: int, size: int, pe: int, nbi: bool = False) -> None:
    target, source, rank = integer(dst, "dst", function), integer(src, "src", function), integer(pe, "pe", function)
    job.require(function).heap.put(target, source, size, rank, function, nbi)


def _get(function: str, dst: int, src: int, size: int, pe: int, nbi: bool = False) -> None:
    target, source, rank = integer(dst, "dst", function), integer(src, "src", function), integer(pe, "pe", function)
    job.require(function).heap.get(target, source, size, rank, function, nbi)


def _signal(function: str, sig: int, signal: int, sig_op: SignalOp | int, pe: int, stream: int | None = None) -> None:
    current = job.require(function)
    value, operation = signal_value(signal, function), signal_operation(sig_op, function)
    address, target = integer(sig, "sig", function), integer(pe, "pe", function)
    current.heap.signal(address, _SIGNAL_BYTES, value, operation, target, function, stream)


def _put_signal(
    function: str, dst: int, src: int, size: int, sig: int, signal: int, sig_op: SignalOp | int, pe: int
) -> None:
    current = job.require(function)
    # Nothing may have been copied when the signal turns out to be wrong.
    signal_value(signal, function)
    signal_operation(sig_op, function)
    target = integer(pe, "pe", function)
    current.heap.check_range(integer(sig, "sig", function), _SIGNAL_BYTES, target, function, align=_SIGNAL_BYTES)
    _put(function, dst, src, size, pe)
    _signal(function, sig, signal, sig_op, pe)


def aclshmem_putmem(dst: int, src: int, elem_size: int, pe: int) -> None:
    """Copies `elem_size` bytes from local address `src` to rank `pe`'s object at symmetric address `dst`.

    Raises:
        ValueError: `dst` is not in the symmetric heap, or there is no rank `pe`.
    """
    _put("aclshmem_putmem", dst, src, integer(elem_size, "elem_size", "aclshmem_putmem"), pe)


def aclshmem_getmem(dst: int, src: int, elem_size: int, pe: int) -> None:
    """Copies `elem_size` bytes from rank `pe`'s object at symmetric address `src` to local address `dst`.

    Raises:
        ValueError: `src` is not in the symmetric heap, or there is no rank `pe`.
    """
    _get("aclshmem_getmem", dst, src, integer(elem_size, "elem_size", "aclshmem_getmem"), pe)


def aclshmem_putmem_nbi(dst: int, src: int, elem_size: int, pe: int) -> None:
    """As `aclshmem_putmem`; complete at the latest after `aclshmem_quiet`."""
    _put("aclshmem_putmem_nbi", dst, src, integer(elem_size, "elem_size", "aclshmem_putmem_nbi"), pe, nbi=True)


def aclshmem_getmem_nbi(dst: int, src: int, elem_size: int, pe: int) -> None:
    """As `aclshmem_getmem`; complete at the latest after `aclshmem_quiet`."""
    _get("aclshmem_getmem_nbi", dst, src, integer(elem_size, "elem_size", "aclshmem_getmem_nbi"), pe, nbi=True)


def aclshmemx_putmem_on_stream(dst: int, src: int, elem_size: int, pe: int, stream: int) -> None:
    """As `aclshmem_putmem`, in the order of a stream."""
    name = "aclshmemx_putmem_on_stream"
    size, key = integer(elem_size, "elem_size", name), stream_key(stream, name)
    if key is None:
        _put(name, dst, src, size, pe)
        return
    target, source, rank = integer(dst, "dst", name), integer(src, "src", name), integer(pe, "pe", name)
    job.require(name).heap.put_on_stream(target, source, size, rank, name, key)


def aclshmemx_getmem_on_stream(dst: int, src: int, elem_size: int, pe: int, stream: int) -> None:
    """As `aclshmem_getmem`, in the order of a stream."""
    name = "aclshmemx_getmem_on_stream"
    size, key = integer(elem_size, "elem_size", name), stream_key(stream, name)
    if key is None:
        _get(name, dst, src, size, pe)
        return
    target, source, rank = integer(dst, "dst", name), integer(src, "src", name), integer(pe, "pe", name)
    job.require(name).heap.get_on_stream(target, source, size, rank, name, key)


def aclshmemx_putmem_signal(
    dst: int, src: int, elem_size: int, sig: int, signal: int, sig_op: SignalOp | int, pe: int
) -> None:
    """As `aclshmem_putmem`, and then sets or adds `signal` on the int32 at symmetric address `sig` of rank `pe`."""
    name = "aclshmemx_putmem_signal"
    _put_signal(name, dst, src, integer(elem_size, "elem_size", name), sig, signal, sig_op, pe)


def aclshmemx_putmem_signal_nbi(
    dst: int, src: int, elem_size: int, sig: int, signal: int, sig_op: SignalOp | int, pe: int
) -> None:
    """As `aclshmemx_putmem_signal`; complete at the latest after `aclshmem_quiet`."""
    name = "aclshmemx_putmem_signal_nbi"
    _put_signal(name, dst, src, integer(elem_size, "elem_size", name), sig, signal, sig_op, pe)


def aclshmemx_signal_op_on_stream(sig_addr: int, signal: int, sig_op: SignalOp | int, pe: int, stream: int) -> None:
    """Sets or adds `signal` on the int32 at symmetric address `sig_addr` of rank `pe`, in the order of a stream."""
    name = "aclshmemx_signal_op_on_stream"
    _signal(name, sig_addr, signal, sig_op, pe, stream_key(stream, name))


def aclshmem_quiet() -> None:
    """Waits until everything that this rank has sent is complete."""
    job.require("aclshmem_quiet").heap.quiet()


def aclshmemx_quiet_on_stream(stream: int) -> None:
    """As `aclshmem_quiet`, in the order of a stream: what the stream was given before is complete by then anyway."""
    stream_key(stream, "aclshmemx_quiet_on_stream")
    job.require("aclshmemx_quiet_on_stream").heap.quiet()


def aclshmem_fence() -> None:
    """Orders what this rank sends to each rank."""
    job.require("aclshmem_fence").heap.fence()


# ---------------------------------------------------------------------------- families by type and by size


def _strided(
    function: str, size: int, dest: int, source: int, dst: int, sst: int, nelems: int, pe: int, put: bool
) -> None:
    """Copies `nelems` elements of `size` bytes; `dst` and `sst` are the strides of target and source, in elements."""
    current = job.require(function)
    target, origin = integer(dest, "dest", function), integer(source, "source", function)
    to, by = integer(dst, "dst", function), integer(sst, "sst", function)
    count, rank = integer(nelems, "nelems", function), integer(pe, "pe", function)
    if to < 1 or by < 1 or count < 0:
        raise ValueError(f"{function}: strides are {to} and {by}, count is {count}: strides must be at least 1")
    copy = current.heap.put if put else current.heap.get
    for index in range(count):
        copy(target + index * to * size, origin + index * by * size, size, rank, function)


def _make(name: str, function: Callable[..., Any], text: str) -> None:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    FAMILIES[name] = function


def _make_by_type(kind: Kind) -> None:
    prefix, size = f"aclshmem_{kind.name}", kind.size

    def p(dst: int, value: float, pe: int) -> None:
        name = f"{prefix}_p"
        raw = (kind.to_raw(value, name) % (1 << (8 * size))).to_bytes(size, "little")
        buffer = ctypes.create_string_buffer(raw, size)
        _put(name, dst, ctypes.addressof(buffer), size, pe)

    def g(src: int, pe: int) -> float:
        buffer = ctypes.create_string_buffer(size)
        _get(f"{prefix}_g", ctypes.addressof(buffer), src, size, pe)
        return kind.read(ctypes.addressof(buffer))

    def iput(dest: int, source: int, dst: int, sst: int, nelems: int, pe: int) -> None:
        _strided(f"{prefix}_iput", size, dest, source, dst, sst, nelems, pe, put=True)

    def iget(dest: int, source: int, dst: int, sst: int, nelems: int, pe: int) -> None:
        _strided(f"{prefix}_iget", size, dest, source, dst, sst, nelems, pe, put=False)

    _make(f"{prefix}_p", p, f"Writes one {kind.name}, `value`, to symmetric address `dst` on rank `pe`.")
    _make(f"{prefix}_g", g, f"The {kind.name} at symmetric address `src` on rank `pe`.")
    strides = "`dst` and `sst` are the strides of target and source in elements"
    _make(f"{prefix}_iput", iput, f"Copies `nelems` elements of {kind.name} to rank `pe`; {strides}.")
    _make(f"{prefix}_iget", iget, f"Copies `nelems` elements of {kind.name} from rank `pe`; {strides}.")
    for suffix in ("", "_nbi"):
        _make_contiguous(f"{prefix}_put{suffix}", f"{prefix}_get{suffix}", size)


def _make_by_size(bits: int) -> None:
    size = bits // 8
    for suffix in ("", "_nbi"):
        _make_contiguous(f"aclshmem_put{bits}{suffix}", f"aclshmem_get{bits}{suffix}", size)
        _make_put_signal(f"aclshmemx_put{bits}_signal{suffix}", size)

    def iput(dest: int, source: int, dst: int, sst: int, nelems: int, pe: int) -> None:
        _strided(f"aclshmem_iput{bits}", size, dest, source, dst, sst, nelems, pe, put=True)

    def iget(dest: int, source: int, dst: int, sst: int, nelems: int, pe: int) -> None:
        _strided(f"aclshmem_iget{bits}", size, dest, source, dst, sst, nelems, pe, put=False)

    strides = "`dst` and `sst` are the strides of target and source in elements"
    _make(f"aclshmem_iput{bits}", iput, f"Copies `nelems` elements of {bits} bits to rank `pe`; {strides}.")
    _make(f"aclshmem_iget{bits}", iget, f"Copies `nelems` elements of {bits} bits from rank `pe`; {strides}.")


def _make_contiguous(put_name: str, get_name: str, size: int) -> None:
    def put(dst: int, src: int, elem_size: int, pe: int) -> None:
        _put(put_name, dst, src, integer(elem_size, "elem_size", put_name) * size, pe, nbi=put_name.endswith("_nbi"))

    def get(dst: int, src: int, elem_size: int, pe: int) -> None:
        _get(get_name, dst, src, integer(elem_size, "elem_size", get_name) * size, pe, nbi=get_name.endswith("_nbi"))

    _make(put_name, put, f"As `aclshmem_putmem`, for `elem_size` elements of {size} bytes.")
    _make(get_name, get, f"As `aclshmem_getmem`, for `elem_size` elements of {size} bytes.")


def _make_put_signal(name: str, size: int) -> None:
    def put_signal(dst: int, src: int, nelems: int, sig: int, signal: int, sig_op: SignalOp | int, pe: int) -> None:
        _put_signal(name, dst, src, integer(nelems, "nelems", name) * size, sig, signal, sig_op, pe)

    _make(name, put_signal, f"As `aclshmemx_putmem_signal`, for `nelems` elements of {size} bytes.")


for _kind in KINDS:
    _make_by_type(_kind)
for _bits in _SIZES:
    _make_by_size(_bits)
