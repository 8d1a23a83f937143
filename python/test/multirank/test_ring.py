"""Data goes round a ring of ranks, each writing into the memory of the next through `symm_at`."""

# Arguments of kernels have no Python types, and torch gets its `npu` when it is imported.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
import triton
import triton.language as tl

import triton_dist.language as dl

from .symmetric import slot, symmetric_tensors

BLOCK = 128


@triton.jit
def ring_all_gather(rows, signals, N: tl.constexpr, SLOT: tl.constexpr):
    """Rank r starts with row r of `rows` and ends with all; step s hands on the row that came in step s - 1."""
    rank = dl.rank()
    world_size = dl.num_ranks()
    right = (rank + 1) % world_size
    lanes = tl.arange(0, N)
    for step in range(world_size - 1):
        row = (rank + world_size - step) % world_size
        if step > 0:
            token = dl.wait(signals + row * SLOT, 1, scope="sys", semantic="acquire", waitValue=1)
            offset = dl.consume_token(row * N, token)
        else:
            offset = row * N
        there = dl.symm_at(rows, right)
        tl.store(there + row * N + lanes, tl.load(rows + offset + lanes))
        dl.notify(signals + row * SLOT, right, signal=1)
    last = (rank + 1) % world_size
    dl.wait(signals + last * SLOT, 1, scope="sys", semantic="acquire", waitValue=1)


@triton.jit
def ring_reduce(value, inbox, signals, out, rank, world_size, N: tl.constexpr, SLOT: tl.constexpr):
    """Sums a vector over all ranks: partial sums go from rank 0 up, the total comes back to rank 0."""
    lanes = tl.arange(0, N)
    mine = tl.load(value + lanes)
    right = (rank + 1) % world_size
    if rank > 0:
        token = dl.wait(signals, 1, scope="sys", semantic="acquire", waitValue=1)
        mine += tl.load(dl.consume_token(inbox, token) + lanes)
    tl.store(dl.symm_at(inbox, right) + lanes, mine)
    dl.notify(signals, right)
    if rank == 0:
        token = dl.wait(signals, 1, scope="sys", semantic="acquire", waitValue=1)
        tl.store(out + lanes, tl.load(dl.consume_token(inbox, token) + lanes))


def all_gather(rank: int, world_size: int) -> None:
    with symmetric_tensors(
        rank, world_size, (world_size * BLOCK, torch.float32), (world_size * slot(torch.int64), torch.int64)
    ) as (rows, signals):
        torch.manual_seed(rank)
        mine = torch.randn(BLOCK)
        rows[rank * BLOCK : (rank + 1) * BLOCK] = mine.npu()
        torch.npu.synchronize()
        dist.barrier()
        ring_all_gather[(1,)](rows, signals, BLOCK, slot(torch.int64))
        want = []
        for other in range(world_size):
            torch.manual_seed(other)
            want.append(torch.randn(BLOCK))
        assert torch.equal(rows.cpu(), torch.cat(want))


def reduce(rank: int, world_size: int) -> None:
    with symmetric_tensors(rank, world_size, (BLOCK, torch.int32), (slot(torch.int64), torch.int64)) as (
        inbox,
        signals,
    ):
        value = torch.arange(BLOCK, dtype=torch.int32) * (rank + 1)
        out = torch.zeros(BLOCK, dtype=torch.int32).npu()
        ring_reduce[(1,)](value.npu(), inbox, signals, out, rank, world_size, BLOCK, slot(torch.int64))
        if rank == 0:
            want = torch.arange(BLOCK, dtype=torch.int32) * sum(range(1, world_size + 1))
            assert torch.equal(out.cpu(), want)


@pytest.mark.dist
@pytest.mark.parametrize("world_size", [2, 4, 8])
@pytest.mark.parametrize("worker", [all_gather, reduce])
def test_ring(dist_test, world_size: int, worker) -> None:
    dist_test(worker, world_size=world_size)


@pytest.mark.dist(nodes=2, timeout=240)
def test_a_ring_over_two_nodes(dist_test) -> None:
    dist_test(all_gather)
