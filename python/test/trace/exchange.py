"""A job of ranks that exchange signals, run by test_trace.py under torchrun: `exchange.py [how rank 1 ends]`."""

# Arguments of kernels have no Python types, and torch gets its `npu` when it is imported.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

import os
import signal
import sys
import time

import shmem as ash
import torch
import torch.distributed as dist
import triton
import triton.language as tl

import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem

SLOT = 8
PROGRAMS = 2
ROUNDS = 3


@triton.jit
def exchange(data, words, base, ROUNDS: tl.constexpr, SLOT: tl.constexpr):
    """Each program of rank 0 hands a number to the same program of rank 1, and gets it back."""
    rank = dl.rank()
    other = 1 - rank
    mine = words + tl.program_id(0) * SLOT
    for step in range(1, ROUNDS + 1):
        if rank == 0:
            dl.notify(mine, other, signal=base + step)  # PING
            dl.wait(mine, 1, "gpu", "acquire", waitValue=base + step)  # BACK
        else:
            dl.wait(mine, 1, "gpu", "acquire", waitValue=base + step)  # THERE
            dl.notify(mine, other, signal=base + step)  # PONG
    shmem.putmem(data, data, 64, other)  # PUT
    shmem.barrier_all()  # BARRIER


@triton.jit
def wait_for_ever(words):
    dl.notify(words, 1, signal=-2)
    dl.wait(words, 1, "gpu", "acquire", waitValue=-1)


def main(end: str) -> None:
    dist.init_process_group("hccl")
    rank = dist.get_rank()
    attributes = ash.InitAttr()
    attributes.my_rank, attributes.n_ranks = rank, dist.get_world_size()
    attributes.local_mem_size, attributes.ip_port = 1 << 20, "tcp://127.0.0.1:8666"
    assert ash.aclshmem_init(attributes) == 0
    words = ash.aclshmem_create_tensor([PROGRAMS * SLOT], dtype=torch.int64, device_id=rank).zero_()
    data = ash.aclshmem_create_tensor([64], dtype=torch.int8, device_id=rank).zero_()
    dist.barrier()
    with torch.npu.stream(torch.npu.Stream()):
        exchange[(PROGRAMS,)](data, words, 16, ROUNDS, SLOT)
    torch.npu.synchronize()
    dist.barrier()
    if end == "killed":
        if rank == 1:
            while words[0].item() != -2:
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        wait_for_ever[(1,)](words)
        torch.npu.synchronize()
    ash.aclshmem_finalize()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
