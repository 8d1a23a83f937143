"""All-gather, all-to-all, and a matrix product that waits for the tiles it needs."""

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

WORLD_SIZES = [2, 4, 8]
N = 80
SLOT = slot(torch.int64)


@triton.jit
def all_gather(source, rows, signals, world_size, N: tl.constexpr, BLOCK: tl.constexpr, SLOT: tl.constexpr):
    """Program p sends this rank's row to rank p, then waits for rank p's."""
    rank = dl.rank()
    peer = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < N
    row = tl.load(source + lanes, mask=mask, other=0.0)
    tl.store(dl.symm_at(rows, peer) + rank * N + lanes, row, mask=mask)
    dl.notify(signals + rank * SLOT, peer, signal=1)
    dl.wait(signals + peer * SLOT, 1, scope="sys", semantic="acquire", waitValue=1)


def gather(rank: int, world_size: int) -> None:
    with symmetric_tensors(rank, world_size, (world_size * N, torch.float32), (world_size * SLOT, torch.int64)) as (
        rows,
        signals,
    ):
        torch.manual_seed(rank)
        source = torch.randn(N).npu()
        all_gather[(world_size,)](source, rows, signals, world_size, N, 128, SLOT)
        want = torch.empty(world_size * N).npu()
        dist.all_gather_into_tensor(want, source)
        assert torch.equal(rows.cpu(), want.cpu())


@triton.jit
def all_to_all(source, rows, signals, world_size, N: tl.constexpr, BLOCK: tl.constexpr, SLOT: tl.constexpr):
    """Row p of `source` goes to rank p, which keeps it as the row of this rank's number."""
    rank = dl.rank()
    lanes = tl.arange(0, BLOCK)
    mask = lanes < N
    for step in range(world_size):
        peer = (rank + step) % world_size
        row = tl.load(source + peer * N + lanes, mask=mask, other=0)
        tl.store(dl.symm_at(rows + rank * N, peer) + lanes, row, mask=mask)
        dl.notify(signals + rank * SLOT, peer, signal=1)
    dl.wait(signals, world_size, scope="sys", semantic="acquire", waitValue=1)


def exchange(rank: int, world_size: int) -> None:
    with symmetric_tensors(rank, world_size, (world_size * N, torch.int32), (world_size * SLOT, torch.int64)) as (
        rows,
        signals,
    ):
        source = (torch.arange(world_size * N, dtype=torch.int32) + 10000 * rank).npu()
        all_to_all[(1,)](source, rows, signals, world_size, N, 128, SLOT)
        want = torch.empty(world_size * N, dtype=torch.int32).npu()
        dist.all_to_all_single(want, source)
        assert torch.equal(rows.cpu(), want.cpu())


@triton.jit
def send_shard(source, gathered, signals, world_size, ROWS: tl.constexpr, K: tl.constexpr, SLOT: tl.constexpr):
    """Program p sends this rank's shard of A to rank p."""
    rank = dl.rank()
    peer = tl.program_id(0)
    index = tl.arange(0, ROWS)[:, None] * K + tl.arange(0, K)[None, :]
    tl.store(dl.symm_at(gathered, peer) + rank * ROWS * K + index, tl.load(source + index))
    dl.notify(signals + rank * SLOT, peer, signal=1)


@triton.jit
def matmul_of_shards(
    gathered,
    b,
    c,
    signals,
    columns,
    ROWS: tl.constexpr,
    K: tl.constexpr,
    TILE_K: tl.constexpr,
    TILE_N: tl.constexpr,
    SLOT: tl.constexpr,
):
    """Program (r, n) waits for rank r's shard, then computes tile (r, n) of C."""
    shard = tl.program_id(0)
    token = dl.wait(signals + shard * SLOT, 1, scope="sys", semantic="acquire", waitValue=1)
    a = dl.consume_token(gathered, token) + shard * ROWS * K
    rows = tl.arange(0, ROWS)[:, None]
    across = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)[None, :]
    a_tile = a + rows * K + tl.arange(0, TILE_K)[None, :]
    b_tile = b + tl.arange(0, TILE_K)[:, None] * columns + across
    sums = tl.zeros((ROWS, TILE_N), dtype=tl.float32)
    for _ in range(K // TILE_K):
        sums = tl.dot(tl.load(a_tile), tl.load(b_tile), sums)
        a_tile += TILE_K
        b_tile += TILE_K * columns
    tl.store(c + (shard * ROWS + rows) * columns + across, sums)


ROWS, K, COLUMNS = 16, 64, 64


def gathered_matmul(rank: int, world_size: int, dtype: torch.dtype) -> None:
    with symmetric_tensors(rank, world_size, (world_size * ROWS * K, dtype), (world_size * SLOT, torch.int64)) as (
        gathered,
        signals,
    ):
        torch.manual_seed(1)
        a = torch.randn(world_size * ROWS, K).to(dtype)
        torch.manual_seed(rank + 2)
        b = torch.randn(K, COLUMNS).to(dtype)
        c = torch.zeros(world_size * ROWS, COLUMNS).npu()
        source = a[rank * ROWS : (rank + 1) * ROWS].contiguous().npu()
        send_shard[(world_size,)](source, gathered, signals, world_size, ROWS, K, SLOT)
        matmul_of_shards[(world_size, COLUMNS // 32)](
            gathered, b.npu(), c, signals, COLUMNS, ROWS, K, TILE_K=32, TILE_N=32, SLOT=SLOT
        )
        assert torch.allclose(c.cpu(), a.float() @ b.float(), rtol=1e-4, atol=1e-4)


@pytest.mark.dist
@pytest.mark.parametrize("world_size", WORLD_SIZES)
@pytest.mark.parametrize("worker", [gather, exchange])
def test_collectives(dist_test, world_size: int, worker) -> None:
    dist_test(worker, world_size=world_size)


@pytest.mark.dist
@pytest.mark.parametrize("world_size", WORLD_SIZES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_matmul_waits_for_its_tiles(dist_test, world_size: int, dtype: torch.dtype) -> None:
    dist_test(gathered_matmul, world_size=world_size, args=(dtype,))
