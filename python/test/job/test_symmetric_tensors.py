"""Tensors in symmetric memory, against torch on the CPU. The only tests here that import torch."""

from __future__ import annotations

import gc
import random
from typing import Any

import host_api
import pytest


def tensors(rank: int, world_size: int) -> None:
    import shmem as ash
    import torch

    torch.npu.set_device(rank)  # type: ignore[attr-defined]
    host_api.init(rank, world_size, port=8666, heap_bytes=1 << 24)
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    data = ash.aclshmem_create_tensor([3, 5], torch.int64, rank)
    half = ash.aclshmem_create_tensor((2, 2, 2), dtype=torch.float16, device_id=rank)
    default = ash.aclshmem_create_tensor(torch.Size([4]), device_id=rank)
    scalar = ash.aclshmem_create_tensor([], dtype=torch.bool, device_id=rank)
    assert (data.shape, data.dtype, data.device, data.is_contiguous()) == (
        (3, 5),
        torch.int64,
        torch.device("npu", rank),
        True,
    )
    assert (half.dtype, default.dtype, scalar.shape) == (torch.float16, torch.float32, ())
    base = ash.aclshmemx_get_heap_base()
    assert all(base <= tensor.data_ptr() < base + (1 << 24) for tensor in (data, half, default, scalar))

    wanted = torch.arange(15).reshape(3, 5)
    data.copy_(wanted + 100 * rank)
    half.fill_(rank + 0.5)
    torch.npu.synchronize()  # type: ignore[attr-defined]
    ash.aclshmem_barrier_all()
    # By address, and by a tensor of one's own.
    fetched = torch.empty(3, 5, dtype=torch.int64, device="npu")
    ash.aclshmem_getmem(fetched.data_ptr(), data.data_ptr(), fetched.nbytes, after)
    assert torch.equal(fetched.cpu(), wanted + 100 * after)
    ash.aclshmem_barrier_all()
    ash.aclshmem_putmem(data[1].data_ptr(), fetched[0].data_ptr(), 5 * 8, after)
    ash.aclshmem_barrier_all()
    expected = wanted + 100 * rank
    expected[1] = wanted[0] + 100 * ((before + 1) % world_size)
    assert torch.equal(data.cpu(), expected)
    assert torch.equal(half.cpu(), torch.full((2, 2, 2), rank + 0.5, dtype=torch.float16))

    texts = {
        "view": host_api.error(ash.aclshmem_free_tensor, data[1]),
        "foreign": host_api.error(ash.aclshmem_free_tensor, fetched),
        "no tensor": host_api.error(ash.aclshmem_free_tensor, data.data_ptr()),
        "empty": host_api.error(ash.aclshmem_create_tensor, [0, 3], torch.int32, rank),
        "negative": host_api.error(ash.aclshmem_create_tensor, [-1, 3], torch.int32, rank),
        "dtype": host_api.error(ash.aclshmem_create_tensor, [2], "int32", rank),
        "shape": host_api.error(ash.aclshmem_create_tensor, [2.0], torch.int32, rank),
        "room": host_api.error(ash.aclshmem_create_tensor, [1 << 24], torch.int32, rank),
    }
    assert "is 40 bytes inside a block of 120 bytes" in texts["view"]
    assert "is not in the symmetric heap of rank" in texts["foreign"]
    assert texts["no tensor"].startswith("TypeError: aclshmem_free_tensor takes a tensor")
    assert "shape is [0, 3]: a tensor in symmetric memory must have elements" in texts["empty"]
    assert texts["negative"].startswith("ValueError: aclshmem_create_tensor: shape is [-1, 3]")
    assert texts["dtype"].startswith("TypeError: aclshmem_create_tensor: dtype must be a torch.dtype, not 'int32'")
    assert texts["shape"].startswith("TypeError: aclshmem_create_tensor: a dimension of shape must be an integer")
    assert f"no room for {4 << 24} bytes" in texts["room"]

    ash.aclshmem_free_tensor(half)
    assert "has been freed already" in host_api.error(ash.aclshmem_free_tensor, half)
    ash.aclshmem_free_tensor(default)
    ash.aclshmem_finalize()
    # Wrong, but no reason to crash: the memory is there for as long as a tensor is.
    assert torch.equal(data.cpu(), expected)
    assert "after aclshmem_finalize" in host_api.error(ash.aclshmem_free_tensor, data)
    del data, half, default, scalar
    gc.collect()
    host_api.init(rank, world_size, port=8666)
    again = ash.aclshmem_create_tensor([8], torch.int32, rank)
    again.zero_()
    ash.aclshmem_free_tensor(again)
    ash.aclshmem_finalize()


def allocate_at_random(rank: int, world_size: int, seed: int) -> None:
    """Tensors come and go; each keeps its own values, and all ranks agree on where they are."""
    import shmem as ash
    import torch

    torch.npu.set_device(rank)  # type: ignore[attr-defined]
    host_api.init(rank, world_size, port=8666, heap_bytes=1 << 20)
    base = ash.aclshmemx_get_heap_base()
    offsets = ash.aclshmem_create_tensor([1], torch.int64, rank)
    draw = random.Random(seed)  # the same on all ranks
    kinds = (torch.int8, torch.int16, torch.float32, torch.int64, torch.bfloat16)
    live: list[Any] = []
    for turn in range(60):
        if live and draw.random() < 0.45:
            tensor, value = live.pop(draw.randrange(len(live)))
            assert torch.equal(tensor.cpu(), torch.full_like(tensor.cpu(), value))
            ash.aclshmem_free_tensor(tensor)
            continue
        shape = [draw.randrange(1, 20) for _ in range(draw.randrange(1, 4))]
        tensor = ash.aclshmem_create_tensor(shape, draw.choice(kinds), rank)
        tensor.fill_(turn)
        live.append((tensor, turn))
        offsets.fill_(tensor.data_ptr() - base)
        torch.npu.synchronize()  # type: ignore[attr-defined]
        ash.aclshmem_barrier_all()
        assert {ash.aclshmem_int64_g(offsets.data_ptr(), pe) for pe in range(world_size)} == {tensor.data_ptr() - base}
        ash.aclshmem_barrier_all()
    ash.aclshmem_finalize()


@pytest.mark.dist
@pytest.mark.parametrize("world_size", [2, 4])
def test_tensors_are_where_they_should_be(dist_test: Any, world_size: int) -> None:
    dist_test(tensors, world_size=world_size)


@pytest.mark.dist
def test_tensors_that_come_and_go(dist_test: Any) -> None:
    dist_test(allocate_at_random, world_size=2, args=(20261201,))
