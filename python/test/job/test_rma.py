"""Copies and signals between ranks, against values worked out here."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import host_api
import light_ranks
import pytest

from triton_dist.shims import shmem as ash

COUNT = 16


def session() -> dict[str, str]:
    """An environment in which any ip_port leads to a job of this test only."""
    return {"TRITON_DIST_SESSION": light_ranks.new_endpoint()}


def words(rank: int) -> list[int]:
    return [1000 * rank + index for index in range(COUNT)]


def in_a_ring(rank: int, world_size: int) -> None:
    """Every rank sends to the next one and fetches from it, with each of the functions for it."""
    host_api.init(rank, world_size, port=8666)
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    size = 4 * COUNT
    source, target = ash.aclshmem_calloc(COUNT, 4), ash.aclshmem_calloc(COUNT, 4)
    signal = ash.aclshmem_calloc(1, 4)
    host_api.int32s(source, COUNT)[:] = words(rank)
    fetched = (ctypes.c_int32 * COUNT)()
    puts: list[Any] = [
        lambda: ash.aclshmem_putmem(target, source, size, after),
        lambda: ash.aclshmem_putmem_nbi(target, source, size, after),
        lambda: ash.aclshmemx_putmem_on_stream(target, source, size, after, 0),
        lambda: ash.aclshmemx_putmem_signal(target, source, size, signal, 1, ash.SignalOp.SIGNAL_ADD, after),
        lambda: ash.aclshmemx_putmem_signal_nbi(target, source, size, signal, 1, 1, after),
        lambda: ash.aclshmem_put8(target, source, size, after),
        lambda: ash.aclshmem_put128(target, source, size // 16, after),
        lambda: ash.aclshmem_put32_nbi(target, source, COUNT, after),
        lambda: ash.aclshmem_int32_put(target, source, COUNT, after),
        lambda: ash.aclshmem_int64_put_nbi(target, source, COUNT // 2, after),
        lambda: ash.aclshmemx_put64_signal(target, source, COUNT // 2, signal, 1, ash.SignalOp.SIGNAL_ADD, after),
    ]
    signals = 0
    for index, put in enumerate(puts):
        host_api.int32s(target, COUNT)[:] = [-1] * COUNT
        ash.aclshmem_barrier_all()
        put()
        ash.aclshmem_quiet()
        ash.aclshmem_fence()
        if index in (3, 4, 10):
            signals += 1
            assert ash.aclshmem_signal_wait_until(signal, ash.CmpOp.CMP_GE, signals) == signals
            assert list(host_api.int32s(target, COUNT)) == words(before), index
        ash.aclshmem_barrier_all()
        assert list(host_api.int32s(target, COUNT)) == words(before), index
        ash.aclshmem_barrier_all()
    place = ctypes.addressof(fetched)
    gets: list[Any] = [
        lambda: ash.aclshmem_getmem(place, source, size, after),
        lambda: ash.aclshmem_getmem_nbi(place, source, size, after),
        lambda: ash.aclshmemx_getmem_on_stream(place, source, size, after, 0),
        lambda: ash.aclshmem_get16(place, source, size // 2, after),
        lambda: ash.aclshmem_uint8_get(place, source, size, after),
    ]
    for index, get in enumerate(gets):
        fetched[:] = [-1] * COUNT
        get()
        assert list(fetched) == words(after), index
    ash.aclshmem_finalize()


@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_put_and_get_in_a_ring(world_size: int) -> None:
    light_ranks.values(light_ranks.run(in_a_ring, world_size, environment=session()))


VALUES = {
    "float": ("=f", 1.5),
    "double": ("=d", -2.25),
    "int8": ("=b", -128),
    "int16": ("=h", -32768),
    "int32": ("=i", -(2**31)),
    "int64": ("=q", -(2**63)),
    "uint8": ("=B", 255),
    "uint16": ("=H", 65535),
    "uint32": ("=I", 2**32 - 1),
    "uint64": ("=Q", 2**64 - 1),
    "char": ("=b", 65),
}


def one_by_one(rank: int, world_size: int) -> None:
    host_api.init(rank, world_size, port=8666)
    after = (rank + 1) % world_size
    place = ash.aclshmem_calloc(len(VALUES), 8)
    for index, (name, (code, value)) in enumerate(VALUES.items()):
        address = place + 8 * index
        getattr(ash, f"aclshmem_{name}_p")(address, value, after)
        ash.aclshmem_barrier_all()
        # Its bytes and no others have been written.
        expected = struct.pack(code, value).ljust(8, b"\0")
        assert ctypes.string_at(address, 8) == expected, name
        assert getattr(ash, f"aclshmem_{name}_g")(address, after) == value, name
    for name, value in (("int8", 128), ("uint16", -1), ("int32", 2**31), ("uint64", 2**64)):
        assert host_api.error(getattr(ash, f"aclshmem_{name}_p"), place, value, after).startswith("ValueError"), name
    assert host_api.error(ash.aclshmem_int32_p, place, "1", after).startswith("TypeError: aclshmem_int32_p")
    ash.aclshmem_finalize()


def test_one_value_of_each_type() -> None:
    light_ranks.values(light_ranks.run(one_by_one, 2, environment=session()))


def strided(rank: int, world_size: int) -> None:
    host_api.init(rank, world_size, port=8666)
    after = (rank + 1) % world_size
    source, target = ash.aclshmem_calloc(COUNT, 4), ash.aclshmem_calloc(COUNT, 4)
    host_api.int32s(source, COUNT)[:] = range(COUNT)
    # Every third element to every second place, and back.
    for put, get in (
        (ash.aclshmem_int32_iput, ash.aclshmem_int32_iget),
        (ash.aclshmem_iput32, ash.aclshmem_iget32),
    ):
        host_api.int32s(target, COUNT)[:] = [-1] * COUNT
        ash.aclshmem_barrier_all()
        put(target, source, 2, 3, 5, after)
        ash.aclshmem_barrier_all()
        assert list(host_api.int32s(target, COUNT)) == [0, -1, 3, -1, 6, -1, 9, -1, 12, *[-1] * 7]
        back = (ctypes.c_int32 * COUNT)()
        get(ctypes.addressof(back), target, 3, 2, 5, after)
        assert list(back) == [0, 0, 0, 3, 0, 0, 6, 0, 0, 9, 0, 0, 12, 0, 0, 0]
        ash.aclshmem_barrier_all()
    ash.aclshmem_finalize()


def test_strided_copies() -> None:
    light_ranks.values(light_ranks.run(strided, 2, environment=session()))


def signals(rank: int, world_size: int) -> int:
    """All ranks add to rank 0's word at once; then one of them sets it."""
    host_api.init(rank, world_size, port=8666)
    word = ash.aclshmem_calloc(16, 4)
    for _ in range(100):
        ash.aclshmemx_signal_op_on_stream(word, 1 + rank, ash.SignalOp.SIGNAL_ADD, 0, 0)
    ash.aclshmem_barrier_all()
    total = int(host_api.int32s(word, 1)[0])
    ash.aclshmem_barrier_all()
    if rank == 1:
        ash.aclshmemx_signal_op_on_stream(word, -5, ash.SignalOp.SIGNAL_SET, 0, 0)
    if rank == 0:
        ash.aclshmemx_signal_wait_until_on_stream(word, ash.CmpOp.CMP_LT, 0, 0)
        assert list(host_api.int32s(word, 2)) == [-5, 0]
    ash.aclshmem_finalize()
    return total


def test_signals_add_up_and_are_set() -> None:
    totals = light_ranks.values(light_ranks.run(signals, 4, environment=session()))
    assert totals == [100 * (1 + 2 + 3 + 4), 0, 0, 0]


def misuse(rank: int, world_size: int) -> dict[str, str]:
    host_api.init(rank, world_size, port=8666)
    block = ash.aclshmem_calloc(COUNT, 4)
    freed = ash.aclshmem_calloc(COUNT, 4)
    ash.aclshmem_free(freed)
    base = ash.aclshmemx_get_heap_base()
    local = (ctypes.c_int32 * COUNT)()
    place = ctypes.addressof(local)
    texts = {
        "foreign target": host_api.error(ash.aclshmem_putmem, place, block, 4, 0),
        "foreign source": host_api.error(ash.aclshmem_getmem, place, place, 4, 0),
        "beyond": host_api.error(ash.aclshmem_putmem, base, place, 1 << 30, 0),
        "before": host_api.error(ash.aclshmem_putmem, base - 4, place, 8, 0),
        "no such rank": host_api.error(ash.aclshmem_putmem, block, place, 4, world_size),
        "negative rank": host_api.error(ash.aclshmem_putmem, block, place, 4, -1),
        "past the block": host_api.error(ash.aclshmem_putmem, block + 60, place, 8, rank),
        "signal past it": host_api.error(ash.aclshmemx_signal_op_on_stream, block + 64, 1, 0, rank, 0),
        "freed": host_api.error(ash.aclshmem_getmem, place, freed, 4, rank),
        "no memory": host_api.error(ash.aclshmem_putmem, block, 4096, 4, rank),
        "negative size": host_api.error(ash.aclshmem_putmem, block, place, -4, 0),
        "type": host_api.error(ash.aclshmem_putmem, block, None, 4, 0),
        "operation": host_api.error(ash.aclshmemx_signal_op_on_stream, block, 1, 2, 0, 0),
        "value": host_api.error(ash.aclshmemx_signal_op_on_stream, block, 2**31, 0, 0, 0),
        "alignment": host_api.error(ash.aclshmemx_signal_op_on_stream, block + 2, 1, 0, 0, 0),
        "stream": host_api.error(ash.aclshmemx_quiet_on_stream, None),
    }
    # With a wrong signal, nothing has been copied.
    local[:] = [9] * COUNT
    host_api.error(ash.aclshmemx_putmem_signal, block, place, 64, place, 1, 0, rank)
    host_api.error(ash.aclshmemx_putmem_signal, block, place, 64, block, 1, 7, rank)
    assert list(host_api.int32s(block, COUNT)) == [0] * COUNT
    ash.aclshmem_finalize()
    return texts


def test_misuse_is_told() -> None:
    (texts,) = light_ranks.values(light_ranks.run(misuse, 1, environment=session()))
    for case in ("foreign target", "foreign source", "beyond", "before"):
        assert texts[case].startswith("ValueError: aclshmem_"), case
        assert "are not in the symmetric heap of rank 0" in texts[case], case
    past = "is in the allocation of 64 bytes at offset"
    assert texts["past the block"].startswith("ValueError: aclshmem_putmem: address")
    assert past in texts["past the block"]
    assert texts["signal past it"].startswith("ValueError: aclshmemx_signal_op_on_stream: address")
    assert "is in no live allocation" in texts["signal past it"]
    assert "is in no live allocation: it was freed" in texts["freed"]
    assert texts["no memory"].startswith("ValueError: aclshmem_putmem: the 4 bytes at local address 0x1000 are not")
    assert "there is no PE 1: the job has PEs 0 to 0" in texts["no such rank"]
    assert "there is no PE -1" in texts["negative rank"]
    assert "size is -4 bytes" in texts["negative size"]
    assert texts["type"].startswith("TypeError: aclshmem_putmem: src must be an integer, not None")
    assert "sig_op is 2: it must be SIGNAL_SET (0) or SIGNAL_ADD (1)" in texts["operation"]
    assert "signal is 2147483648: signal words have 32 bits" in texts["value"]
    assert "must be a multiple of 4 bytes" in texts["alignment"]
    assert texts["stream"].startswith("TypeError: aclshmemx_quiet_on_stream: stream must be an integer")
