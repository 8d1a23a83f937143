"""aclshmem's device functions: put and get, with and without signal, and what orders and completes them."""

# Arguments of kernels have no Python types, and torch gets its `npu` when it is imported.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
import triton
import triton.language as tl

from triton_dist.language.extra import libshmem_device as shmem

from .symmetric import slot, symmetric_tensors

WORLD_SIZES = [2, 4, 8]
N = 96
SLOT = slot(torch.int32)


@triton.jit
def put_with_signal(data, signals, source, rank, world_size, N: tl.constexpr, SLOT: tl.constexpr):
    for step in range(1, world_size):
        pe = (rank + step) % world_size
        shmem.putmem_signal(data + rank * N, source, N * 4, signals + rank * SLOT, rank + 10, shmem.SIGNAL_SET, pe)
    for other in range(world_size):
        if other != rank:
            shmem.signal_wait_until(signals + other * SLOT, shmem.CMP_EQ, other + 10)


@triton.jit
def put_with_signal_nbi(data, signals, source, rank, world_size, N: tl.constexpr, SLOT: tl.constexpr):
    for step in range(1, world_size):
        pe = (rank + step) % world_size
        shmem.putmem_signal_nbi(data + rank * N, source, N * 4, signals, 1, shmem.SIGNAL_ADD, pe)
    shmem.quiet()
    shmem.signal_wait_until(signals, shmem.CMP_GE, world_size - 1)


@triton.jit
def put_fence_signal(data, signals, source, rank, world_size, N: tl.constexpr, SLOT: tl.constexpr):
    for step in range(1, world_size):
        pe = (rank + step) % world_size
        shmem.putmem(data + rank * N, source, N * 4, pe)
        shmem.fence()
        shmem.signal_op(signals, 1, shmem.SIGNAL_ADD, pe)
    shmem.signal_wait_until(signals, shmem.CMP_GT, world_size - 2)


@triton.jit
def put_nbi_quiet_barrier(data, signals, source, rank, world_size, N: tl.constexpr, SLOT: tl.constexpr):
    for step in range(1, world_size):
        shmem.putmem_nbi(data + rank * N, source, N * 4, (rank + step) % world_size)
    shmem.quiet()
    shmem.barrier_all()


@triton.jit
def get(data, signals, source, rank, world_size, N: tl.constexpr, SLOT: tl.constexpr):
    for step in range(1, world_size):
        pe = (rank + step) % world_size
        shmem.getmem(data + pe * N, source, N * 4, pe)
    shmem.barrier_all()


@triton.jit
def get_nbi_quiet(data, signals, source, rank, world_size, N: tl.constexpr, SLOT: tl.constexpr):
    for step in range(1, world_size):
        pe = (rank + step) % world_size
        shmem.getmem_nbi(data + pe * N, source, N * 4, pe)
    shmem.quiet()
    shmem.barrier_all_vec()


def exchange(rank: int, world_size: int, kernel: str) -> None:
    with symmetric_tensors(
        rank, world_size, (world_size * N, torch.float32), (world_size * SLOT, torch.int32), (N, torch.float32)
    ) as (data, signals, source):
        source.copy_(torch.arange(N) + 1000.0 * rank)
        data[rank * N : (rank + 1) * N] = source
        torch.npu.synchronize()
        dist.barrier()
        globals()[kernel][(1,)](data, signals, source, rank, world_size, N, SLOT)
        want = torch.arange(N)[None, :] + 1000.0 * torch.arange(world_size)[:, None]
        assert torch.equal(data.cpu().reshape(world_size, N), want)


@pytest.mark.dist
@pytest.mark.parametrize("world_size", WORLD_SIZES)
@pytest.mark.parametrize(
    "kernel",
    [put_with_signal, put_with_signal_nbi, put_fence_signal, put_nbi_quiet_barrier, get, get_nbi_quiet],
    ids=lambda kernel: kernel.__name__,
)
def test_everyone_gets_everything(dist_test, world_size: int, kernel) -> None:
    dist_test(exchange, world_size=world_size, args=(kernel.__name__,))


@triton.jit
def part_of_a_row(data, source, right, size):
    # Sizes are bytes, not elements; what lies beyond must stay as it was.
    shmem.putmem(data + 2, source + 1, size, right)
    shmem.barrier_all()


def odd_sizes(rank: int, world_size: int) -> None:
    for size in (1, 3, 8, 13, 4 * N - 8):
        with symmetric_tensors(rank, world_size, (N, torch.int32), (N, torch.int32)) as (data, source):
            source.copy_(torch.arange(1, N + 1, dtype=torch.int32) * 0x01010101)
            torch.npu.synchronize()
            dist.barrier()
            part_of_a_row[(1,)](data, source, (rank + 1) % world_size, size)
            want = torch.zeros(4 * N, dtype=torch.uint8)
            want[8 : 8 + size] = source.cpu().view(torch.uint8)[4 : 4 + size]
            assert torch.equal(data.cpu().view(torch.uint8), want)


@pytest.mark.dist
def test_sizes_are_bytes(dist_test) -> None:
    dist_test(odd_sizes, world_size=2)


@triton.jit
def compare(words, out, rank, right, SLOT: tl.constexpr):
    # The words go from 0 over 3 to 6; each wait is satisfied at one of the two steps, and the value seen tells which.
    shmem.int_p(words, 3, right)
    tl.store(out, shmem.signal_wait_until(words, shmem.CMP_EQ, 3))
    tl.store(out + 1, shmem.signal_wait_until(words, shmem.CMP_NE, 0))
    tl.store(out + 2, shmem.signal_wait_until(words, shmem.CMP_GT, 2))
    tl.store(out + 3, shmem.signal_wait_until(words, shmem.CMP_GE, 3))
    tl.store(out + 4, shmem.signal_wait_until(words, shmem.CMP_LT, 4))
    tl.store(out + 5, shmem.signal_wait_until(words, shmem.CMP_LE, 3))
    shmem.barrier_all()
    shmem.signal_op(words, 3, shmem.SIGNAL_ADD, right)
    tl.store(out + 6, shmem.signal_wait_until(words, shmem.CMP_GT, 3))
    shmem.barrier_all()
    shmem.signal_op(words, -5, shmem.SIGNAL_SET, right)
    tl.store(out + 7, shmem.signal_wait_until(words, shmem.CMP_LT, 0))


def comparisons(rank: int, world_size: int) -> None:
    with symmetric_tensors(rank, world_size, (SLOT, torch.int32)) as (words,):
        out = torch.zeros(8, dtype=torch.int32).npu()
        compare[(1,)](words, out, rank, (rank + 1) % world_size, SLOT)
        assert out.tolist() == [3] * 6 + [6, -5]


@pytest.mark.dist
@pytest.mark.parametrize("world_size", WORLD_SIZES)
def test_words_and_comparisons(dist_test, world_size: int) -> None:
    dist_test(comparisons, world_size=world_size)


@triton.jit
def counts(out, remote_words):
    tl.store(out, shmem.my_pe())
    tl.store(out + 1, shmem.n_pes())
    tl.store(shmem.remote_ptr(remote_words, (shmem.my_pe() + 1) % shmem.n_pes()), shmem.my_pe() + 1)


def numbers(rank: int, world_size: int) -> None:
    with symmetric_tensors(rank, world_size, (SLOT, torch.int32)) as (words,):
        out = torch.zeros(2, dtype=torch.int32).npu()
        counts[(1,)](out, words)
        torch.npu.synchronize()
        dist.barrier()
        assert out.tolist() == [rank, world_size]
        assert words[0].item() == (rank - 1) % world_size + 1


@pytest.mark.dist
@pytest.mark.parametrize("world_size", WORLD_SIZES)
def test_pe_numbers_and_remote_pointers(dist_test, world_size: int) -> None:
    dist_test(numbers, world_size=world_size)
