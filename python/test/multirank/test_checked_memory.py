"""Kernels that reach outside of what is theirs: an error that says who and where, on NPUs that have no such check."""

# Arguments of kernels have no Python types, and torch gets its `npu` when it is imported.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

import inspect

import pytest
import shmem as ash
import torch
import torch.distributed as dist
import triton
import triton.language as tl

import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem

from .symmetric import symmetric_tensors

# 120 bytes: the next allocation begins 8 bytes behind their end.
WORDS = 30


@triton.jit
def store_at(p, source, pe, index):
    tl.store(dl.symm_at(p + index, pe), 1)  # HERE


@triton.jit
def put(p, source, pe, index):
    shmem.putmem(p + index, source, 8, pe)  # HERE


@triton.jit
def get(p, source, pe, index):
    shmem.getmem(source, p + index, 8, pe)  # HERE


@triton.jit
def notify(p, source, pe, index):
    dl.notify(p + index, pe)  # HERE


@triton.jit
def put_with_signal(p, source, pe, index):
    shmem.putmem_signal(source, source, 4, p + index, 1, shmem.SIGNAL_SET, pe)  # HERE


KERNELS = [store_at, put, get, notify, put_with_signal]


def place_of(kernel: triton.JITFunction) -> str:
    lines, first = inspect.getsourcelines(kernel.fn)
    (offset,) = [i for i, line in enumerate(lines) if line.rstrip().endswith("# HERE")]
    return f"; kernel {kernel.__name__}, program (0,0,0), {__file__}:{first + offset}, rank "


def failure(kernel: triton.JITFunction, *arguments: object) -> str:
    try:
        kernel[(1,)](*arguments)
        torch.npu.synchronize()
    except RuntimeError as error:
        return str(error)
    return ""


def reach_outside(rank: int, world_size: int) -> None:
    other = (rank + 1) % world_size
    with symmetric_tensors(rank, world_size, (WORDS, torch.int32), (WORDS, torch.int32)) as (block, source):
        freed = ash.aclshmem_create_tensor([WORDS], dtype=torch.int32, device_id=rank)
        freed_address = freed.data_ptr()
        ash.aclshmem_free_tensor(freed)
        wrong = {
            "is local memory, not symmetric": torch.zeros(WORDS, dtype=torch.int32).npu(),
            "is in no live allocation: it was freed": _tensor_at(freed_address, rank),
        }
        for kernel in KERNELS:
            place = f"{place_of(kernel)}{rank}"
            for words, tensor in wrong.items():
                message = failure(kernel, tensor, source, other, 0)
                assert words in message, (kernel.__name__, message)
                assert place in message
            message = failure(kernel, block, source, other, WORDS - (kernel in (put, get)))
            assert "is in the allocation of 120 bytes" in message
            assert "are past its end" in message
            assert place in message
            for pe in (world_size, -1):
                message = failure(kernel, block, source, pe, 0)
                assert f"PE {pe} does not exist: expected 0 to {world_size - 1}" in message
                assert place in message
        # All of these have done nothing, and the job goes on.
        dist.barrier()
        assert not block.any()
        dist.barrier()
        put[(1,)](block, source.fill_(rank + 5), other, 0)
        torch.npu.synchronize()
        dist.barrier()
        assert block[:3].tolist() == [(rank - 1) % world_size + 5] * 2 + [0]


def _tensor_at(address: int, rank: int) -> torch.Tensor:
    from triton_dist.runtime import job, torch_device

    current = job.require("test")
    return torch_device.tensor_from_address(address, [WORDS], torch.int32, rank, current.reference())


def free_on_one_rank(rank: int, world_size: int) -> None:
    """A rank that still uses what the other one has given back, since it missed that there is a barrier in it."""
    with symmetric_tensors(rank, world_size, (WORDS, torch.int32)) as (source,):
        from triton_dist.runtime import job

        heap = job.require("test").heap
        offset = heap.take(256, 64)
        tensor = _tensor_at(heap.base + offset, rank)
        dist.barrier()
        if rank == 1:
            heap.give_back(offset)
        dist.barrier()
        if rank == 0:
            for kernel in KERNELS:
                message = failure(kernel, tensor, source, 1, 0)
                assert "of 256 bytes on PE 0, but in no live allocation of PE 1" in message
                assert f"{place_of(kernel)}0" in message
            heap.give_back(offset)
        dist.barrier()


@pytest.mark.dist
def test_access_outside_the_symmetric_heap_is_an_error_with_its_line(dist_test) -> None:
    dist_test(reach_outside, world_size=2)


@pytest.mark.dist
def test_access_to_what_the_target_has_freed_is_an_error(dist_test) -> None:
    dist_test(free_on_one_rank, world_size=2)
