"""The symmetric heap by addresses. All functions that take or give back memory are collective."""

from __future__ import annotations

from triton_dist.runtime import job

from ._arguments import integer
from ._types import MemType

__all__ = [
    "aclshmem_align",
    "aclshmem_calloc",
    "aclshmem_free",
    "aclshmem_malloc",
    "aclshmem_ptr",
    "aclshmemx_align",
    "aclshmemx_calloc",
    "aclshmemx_free",
    "aclshmemx_get_heap_base",
    "aclshmemx_malloc",
]


def aclshmem_malloc(size: int) -> int:
    """Address of `size` new bytes, at the same place of the heap on all ranks; a barrier is behind it.

    Raises:
        ValueError: size is 0 or less.
        RuntimeError: there is no room (says what was asked and is free), or the ranks make different calls.
    """
    return job.require("aclshmem_malloc").alloc(integer(size, "size", "aclshmem_malloc"))


def aclshmem_calloc(nmemb: int, size: int) -> int:
    """As `aclshmem_malloc`, for `nmemb` elements of `size` bytes, all zero on every rank when it returns."""
    name = "aclshmem_calloc"
    count = integer(nmemb, "nmemb", name) * integer(size, "size", name)
    return job.require(name).alloc(count, name=name, clear=True)


def aclshmem_align(alignment: int, size: int) -> int:
    """As `aclshmem_malloc`, at an address that is a multiple of `alignment`, a power of two."""
    name = "aclshmem_align"
    return job.require(name).alloc(integer(size, "size", name), integer(alignment, "alignment", name), name)


def aclshmem_free(ptr: int) -> None:
    """Gives back the memory at `ptr`; a barrier is before it.

    Raises:
        ValueError: no block begins there.
    """
    job.require("aclshmem_free").free(integer(ptr, "ptr", "aclshmem_free"))


def aclshmemx_malloc(size: int, mem_type: MemType = MemType.DEVICE_SIDE) -> int:
    """As `aclshmem_malloc`, from a heap of one's choice: simulated NPUs have the device's only."""
    _check_mem_type(mem_type, "aclshmemx_malloc")
    return aclshmem_malloc(size)


def aclshmemx_calloc(count: int, size: int, mem_type: MemType = MemType.DEVICE_SIDE) -> int:
    """As `aclshmem_calloc`, from a heap of one's choice: simulated NPUs have the device's only."""
    _check_mem_type(mem_type, "aclshmemx_calloc")
    return aclshmem_calloc(count, size)


def aclshmemx_align(alignment: int, size: int, mem_type: MemType = MemType.DEVICE_SIDE) -> int:
    """As `aclshmem_align`, from a heap of one's choice: simulated NPUs have the device's only."""
    _check_mem_type(mem_type, "aclshmemx_align")
    return aclshmem_align(alignment, size)


def aclshmemx_free(ptr: int, mem_type: MemType = MemType.DEVICE_SIDE) -> None:
    """As `aclshmem_free`, to the heap that the memory is from."""
    _check_mem_type(mem_type, "aclshmemx_free")
    aclshmem_free(ptr)


def aclshmem_ptr(ptr: int, peer: int) -> int:
    """Address, in this process, of rank `peer`'s object at symmetric address `ptr`; 0 if there is none."""
    name = "aclshmem_ptr"
    return job.require(name).heap.translate(integer(ptr, "ptr", name), integer(peer, "peer", name))


def aclshmemx_get_heap_base(mem_type: MemType | None = None) -> int:
    """Address of this rank's heap; 0 where this process is in no job."""
    _check_mem_type(MemType.DEVICE_SIDE if mem_type is None else mem_type, "aclshmemx_get_heap_base")
    current = job.current()
    return 0 if current is None else current.heap.base


def _check_mem_type(mem_type: MemType, function: str) -> None:
    if not isinstance(mem_type, MemType):
        raise TypeError(f"{function}: mem_type must be a MemType, not {mem_type!r}")
    if mem_type is not MemType.DEVICE_SIDE:
        raise NotImplementedError(f"{function}: MemType.HOST_SIDE: simulated NPUs have the device's heap only")
