"""What tests of the host API share: joining a job by its public functions, and views of memory by address."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from triton_dist.shims import shmem as ash

HEAP = 1 << 20


def init(rank: int, world_size: int, port: int, heap_bytes: int = HEAP) -> None:
    """Joins the job at a port, as users do."""
    attributes = ash.InitAttr()
    attributes.my_rank, attributes.n_ranks = rank, world_size
    attributes.local_mem_size, attributes.ip_port = heap_bytes, f"tcp://127.0.0.1:{port}"
    assert ash.aclshmem_init(attributes) == 0


def int32s(address: int, count: int) -> Any:
    """The int32 words at an address, as a ctypes array."""
    return (ctypes.c_int32 * count).from_address(address)


def error(call: Callable[..., Any], *arguments: Any) -> str:
    """The error that a call ends with, as `Class: text`."""
    try:
        call(*arguments)
    except Exception as raised:
        return f"{type(raised).__name__}: {raised}"
    raise AssertionError(f"{call} did not fail")
