"""Symmetric memory as buffers. `buffer`, `calloc`, `align` and `free` are collective."""

from __future__ import annotations

from .._memory import aclshmem_ptr, aclshmemx_align, aclshmemx_calloc, aclshmemx_free, aclshmemx_malloc
from .utils import (
    SIZE_MAX,
    AclshmemError,
    AclshmemInvalid,
    Buffer,
    MemType,
    active_instance,
    in_this_layers_errors,
    integer,
    usable,
)


def buffer(
    size: int, release: bool = False, except_on_del: bool = True, mem_type: MemType = MemType.DEVICE_SIDE
) -> Buffer:
    """`size` new bytes, at the same place of the heap on all ranks. `release` and `except_on_del` have no meaning.

    Raises:
        AclshmemInvalid: size or heap is not possible.
        AclshmemError: there is no room.
    """
    integer(size, "size", 1, SIZE_MAX)
    with in_this_layers_errors():
        return Buffer._owning(aclshmemx_malloc(size, mem_type), size, mem_type, active_instance())


def calloc(count: int, size: int, mem_type: MemType = MemType.DEVICE_SIDE) -> Buffer:
    """As `buffer`, for `count` elements of `size` bytes, all zero."""
    integer(size, "size", 1, SIZE_MAX)
    integer(count, "count", 1, SIZE_MAX // size)
    with in_this_layers_errors():
        return Buffer._owning(aclshmemx_calloc(count, size, mem_type), count * size, mem_type, active_instance())


def align(alignment: int, size: int, mem_type: MemType = MemType.DEVICE_SIDE) -> Buffer:
    """As `buffer`, at an address that is a multiple of `alignment`, a power of two."""
    integer(alignment, "alignment", 1, SIZE_MAX)
    integer(size, "size", 1, SIZE_MAX)
    with in_this_layers_errors():
        return Buffer._owning(aclshmemx_align(alignment, size, mem_type), size, mem_type, active_instance())


def free(buf: Buffer) -> None:
    """Gives the memory of a buffer back.

    Raises:
        AclshmemInvalid: it is none, owns nothing, or has been freed.
    """
    usable(buf, "buf")
    if not buf.owned:
        raise AclshmemInvalid("buf does not own its memory: only buffers of buffer, calloc and align can be freed")
    # Set first: while this thread waits for the other ranks, another thread must not free it again.
    buf._released = True
    with in_this_layers_errors():
        aclshmemx_free(buf.addr, buf.mem_type)


def get_peer_buffer(buf: Buffer, pe: int) -> Buffer:
    """Rank `pe`'s object that is at the place of `buf`, as memory of this process.

    Raises:
        AclshmemInvalid: `buf` is no usable buffer, or `pe` no number.
        AclshmemError: there is no such rank, or `buf` is not in the symmetric heap.
    """
    usable(buf, "buf")
    integer(pe, "pe", 0, (1 << 31) - 1)
    with in_this_layers_errors():
        address = aclshmem_ptr(buf.addr, pe)
    if address == 0:
        raise AclshmemError(f"{buf!r} has no counterpart on PE {pe}: no such PE, or not symmetric memory")
    return Buffer._borrowed(address, buf.length, buf.mem_type, buf)
