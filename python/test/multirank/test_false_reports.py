"""A job that gets on is not taken for one that cannot, however slow the machine makes it."""

# Arguments of kernels have no Python types, and torch gets its `npu` when it is imported.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
import shmem as ash
import torch
import torch.distributed as dist
import triton
import triton.language as tl

import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem

from .symmetric import slot, symmetric_tensors

RANKS = 8
SLOT = slot(torch.int64)


@pytest.fixture
def busy_cores() -> Iterator[None]:
    """Something else keeps all cores busy."""
    command = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(command) for _ in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


@triton.jit
def pass_on(signals, turn, SLOT: tl.constexpr):
    """A number goes once round the ranks, from rank 0; then all meet."""
    rank = dl.rank()
    following = (rank + 1) % dl.num_ranks()
    if rank == 0:
        dl.notify(signals, following, signal=turn)
        dl.wait(signals, 1, "sys", "acquire", waitValue=turn)
    else:
        dl.wait(signals, 1, "sys", "acquire", waitValue=turn)
        dl.notify(signals, following, signal=turn)
    shmem.barrier_all()


@triton.jit
def wait_for(signals, turn):
    dl.wait(signals, 1, "sys", "acquire", waitValue=turn)


@triton.jit
def tell(signals, turn, pe):
    dl.notify(signals, pe, signal=turn)


def works(rank: int, world_size: int) -> None:
    """Every kind of wait, in turn with the others: at each time all ranks but one wait for that one."""
    threading.Thread(target=queue.SimpleQueue().get, daemon=True).start()
    shapes = (2 * SLOT, torch.int64), (slot(torch.int32), torch.int32)
    with symmetric_tensors(rank, world_size, *shapes) as (signals, words):
        second = signals[SLOT:]
        message = torch.full((1 << 18,), rank, dtype=torch.int32).npu()
        following, previous = (rank + 1) % world_size, (rank - 1) % world_size
        stream, aside = torch.npu.current_stream().npu_stream, torch.npu.Stream()
        for turn in range(16, 18):
            if rank == turn % world_size:
                time.sleep(0.2)
            pass_on[(1,)](signals, turn, SLOT)
            torch.npu.synchronize()
            # Kernels wait for a signal that is given behind collectives, of which this rank's part is over first.
            wait_for[(1,)](second, turn)
            total = torch.ones(1, dtype=torch.int32).npu()
            dist.all_reduce(total)
            assert total.item() == world_size
            dist.broadcast(message, turn % world_size)
            if rank % 2 == 0:
                dist.send(message, following)
                dist.recv(message, previous)
            else:
                received = torch.empty_like(message)
                dist.recv(received, previous)
                dist.send(message, following)
            dist.barrier()
            with torch.npu.stream(aside):
                tell[(1,)](second, turn, following)
            ash.aclshmemx_signal_op_on_stream(words.data_ptr(), turn, ash.SignalOp.SIGNAL_SET, following, stream)
            ash.aclshmemx_signal_wait_until_on_stream(words.data_ptr(), ash.CmpOp.CMP_EQ, turn, stream)
            ash.aclshmem_signal_wait_until(words.data_ptr(), ash.CmpOp.CMP_EQ, turn)
            ash.aclshmem_barrier_all()


@pytest.mark.dist(timeout=240)
@pytest.mark.usefixtures("busy_cores")
def test_a_job_that_works_is_not_reported(dist_test, busy_run: int) -> None:
    dist_test(works, world_size=RANKS)
