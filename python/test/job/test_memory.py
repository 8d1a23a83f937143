"""The symmetric heap by addresses: the same place on all ranks, room that is really there, misuse that is told."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import host_api
import light_ranks
import pytest

from triton_dist.runtime import job, native
from triton_dist.shims import shmem as ash

GIB = 1 << 30


def session() -> dict[str, str]:
    """An environment in which any ip_port leads to a job of this test only."""
    return {"TRITON_DIST_SESSION": light_ranks.new_endpoint()}


def allocate(rank: int, world_size: int) -> list[int]:
    host_api.init(rank, world_size, port=8666)
    base = ash.aclshmemx_get_heap_base()
    plain = ash.aclshmem_malloc(100)
    zeros = ash.aclshmem_calloc(25, 4)
    aligned = ash.aclshmem_align(4096, 10)
    assert aligned % 4096 == 0
    assert len({plain // 64, zeros // 64, aligned // 64}) == 3
    assert list(host_api.int32s(zeros, 25)) == [0] * 25
    host_api.int32s(zeros, 25)[:] = [rank + 1] * 25
    ash.aclshmem_barrier_all()
    # Everybody sees everybody's, at the address that aclshmem_ptr gives.
    seen = [host_api.int32s(ash.aclshmem_ptr(zeros, pe), 25)[24] for pe in range(world_size)]
    assert seen == [pe + 1 for pe in range(world_size)]
    assert ash.aclshmem_ptr(zeros, rank) == zeros
    for wrong in ((zeros, world_size), (zeros, -1), (base - 1, 0), (12345, 0)):
        assert ash.aclshmem_ptr(*wrong) == 0
    ash.aclshmem_barrier_all()
    ash.aclshmem_free(zeros)
    # What was written there before is not there after a calloc at the same place.
    again = ash.aclshmem_calloc(25, 4)
    assert again == zeros
    assert list(host_api.int32s(again, 25)) == [0] * 25
    offsets = [address - base for address in (plain, zeros, aligned)]
    ash.aclshmem_finalize()
    return offsets


@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_blocks_are_at_the_same_place_on_all_ranks(world_size: int) -> None:
    offsets = light_ranks.values(light_ranks.run(allocate, world_size, environment=session()))
    assert offsets == [offsets[0]] * world_size


def misuse(rank: int, world_size: int) -> dict[str, str]:
    host_api.init(rank, world_size, port=8666)
    block = ash.aclshmem_malloc(128)
    freed = ash.aclshmem_malloc(64)
    ash.aclshmem_free(freed)
    texts = {
        "inside": host_api.error(ash.aclshmem_free, block + 64),
        "twice": host_api.error(ash.aclshmem_free, freed),
        "foreign": host_api.error(ash.aclshmem_free, 4096),
        "zero": host_api.error(ash.aclshmem_malloc, 0),
        "negative": host_api.error(ash.aclshmem_malloc, -1),
        "type": host_api.error(ash.aclshmem_malloc, 64.0),
        "alignment": host_api.error(ash.aclshmem_align, 48, 64),
        "room": host_api.error(ash.aclshmem_malloc, 2 * host_api.HEAP),
    }
    # Nothing of this has harmed the heap, and all of it can be had.
    ash.aclshmem_free(block)
    whole = ash.aclshmem_malloc(host_api.HEAP)
    ctypes.memset(whole, 1, host_api.HEAP)
    ash.aclshmem_free(whole)
    ash.aclshmem_finalize()
    return texts


def test_misuse_is_told() -> None:
    for texts in light_ranks.values(light_ranks.run(misuse, 2, environment=session())):
        assert "is 64 bytes inside a block of 128 bytes" in texts["inside"]
        assert "has been freed already, or was never allocated" in texts["twice"]
        assert "is not in the symmetric heap of rank" in texts["foreign"]
        assert texts["zero"].startswith("ValueError: aclshmem_malloc: size is 0 bytes")
        assert texts["negative"].startswith("ValueError: aclshmem_malloc: size is -1 bytes")
        assert texts["type"].startswith("TypeError: aclshmem_malloc: size must be an integer, not 64.0")
        assert "alignment is 48 bytes: it must be a power of two" in texts["alignment"]
        assert texts["room"].startswith(f"RuntimeError: aclshmem_malloc: no room for {2 * host_api.HEAP} bytes")
        assert "free" in texts["room"]
        assert "local_mem_size" in texts["room"]


def differ(rank: int, world_size: int, calls: list[str]) -> str:
    host_api.init(rank, world_size, port=8666)
    block = ash.aclshmem_malloc(64)
    other = ash.aclshmem_malloc(64)
    scope: dict[str, Any] = {"ash": ash, "block": block, "other": other}
    return host_api.error(lambda: eval(calls[rank], scope))


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        (
            ["ash.aclshmem_malloc(64)", "ash.aclshmem_malloc(128)"],
            "rank 0 is in aclshmem_malloc of 64 bytes, rank 1 in aclshmem_malloc of 128 bytes",
        ),
        (
            ["ash.aclshmem_barrier_all()", "ash.aclshmem_calloc(1, 64)"],
            "rank 0 is in aclshmem_barrier_all, rank 1 in aclshmem_calloc of 64 bytes",
        ),
        (["ash.aclshmem_free(block)", "ash.aclshmem_free(other)"], "rank 0 is in aclshmem_free at heap offset"),
    ],
)
def test_ranks_that_make_different_collective_calls_are_told(calls: list[str], told: str) -> None:
    first, second = light_ranks.values(light_ranks.run(differ, 2, calls, environment=session()))
    assert told in first
    assert "the ranks make different collective calls: rank 1 is in" in second


def run_out_on_rank_1(rank: int, world_size: int) -> str:
    """The system has no memory left for rank 1, the others have all that they want."""
    host_api.init(rank, world_size, port=8666)
    current = job.require("test")
    take = current.heap.take

    def refuse(bytes_: int, align: int) -> int:
        raise native.NativeError("the system gives no more memory")

    if rank == 1:
        current.heap.take = refuse  # type: ignore[method-assign]
    text = host_api.error(ash.aclshmem_malloc, 256)
    current.heap.take = take  # type: ignore[method-assign]
    # The ranks still agree on what is where.
    address = ash.aclshmem_malloc(host_api.HEAP)
    ash.aclshmem_free(address)
    ash.aclshmem_finalize()
    return text


def test_a_rank_that_runs_out_of_memory_is_told_to_all() -> None:
    texts = light_ranks.values(light_ranks.run(run_out_on_rank_1, 3, environment=session()))
    assert texts[1] == "RuntimeError: aclshmem_malloc: the system gives no more memory"
    for rank in (0, 2):
        assert texts[rank] == "RuntimeError: aclshmem_malloc: rank 1 has no room for 256 bytes in its symmetric heap"


def fill_a_little(rank: int, world_size: int) -> tuple[int, bool]:
    """Uses 1 MiB of a heap of 1 GiB; returns the kilobytes that the process then holds."""
    host_api.init(rank, world_size, port=8666, heap_bytes=GIB)
    block = ash.aclshmem_malloc(1 << 20)
    ctypes.memset(block, 1, 1 << 20)
    ash.aclshmem_barrier_all()
    lines = Path("/proc/self/status").read_text().splitlines()
    resident = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
    left_in_shm = any("triton" in name for name in os.listdir("/dev/shm"))
    ash.aclshmem_finalize()
    return resident, left_in_shm


def test_a_heap_of_a_gibibyte_on_8_ranks_costs_what_is_used() -> None:
    results = light_ranks.values(light_ranks.run(fill_a_little, 8, deadline=60.0, environment=session()))
    assert max(resident for resident, _ in results) < 150_000
    assert not any(left for _, left in results)
