"""Addresses are right however an offset comes about: constant, argument, loop, cast, before or after `symm_at`."""

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
N = 16
SLOT = slot(torch.int64)


@triton.jit
def constant_offsets(data, signals, out, right):
    lanes = tl.arange(0, 16)
    tl.store(dl.symm_at(data + 48, right) + lanes, 3)
    tl.store(dl.symm_at(data, right) + 32 + lanes, 2)
    tl.store(dl.symm_at(data + 8, right) + 8 + lanes, 1)
    tl.store(dl.symm_at(data, right) + lanes, 0)
    dl.notify(signals + 8, right, signal=5)
    dl.notify(signals + 24, right, signal=7)
    first = dl.wait(signals + 8, 1, "sys", "acquire", waitValue=5)
    second = dl.wait(signals + 24, 1, "sys", "acquire", waitValue=7)
    lower = dl.consume_token(data + 32, first)
    upper = dl.consume_token(data, second) + 32
    tl.store(out + lanes, tl.load(lower - 32 + lanes))
    tl.store(out + 16 + lanes, tl.load(lower - 16 + lanes))
    tl.store(out + 32 + lanes, tl.load(upper + lanes))
    tl.store(out + 48 + lanes, tl.load(upper + 16 + lanes))


@triton.jit
def argument_offsets(data, signals, out, right, step, slot):
    lanes = tl.arange(0, 16)
    for i in range(4):
        tl.store(dl.symm_at(data + i * step, right) + lanes, i)
        dl.notify(signals + slot * i, right, signal=i + 1)
    for i in range(4):
        token = dl.wait(signals + slot * i, 1, "sys", "acquire", waitValue=i + 1)
        tl.store(out + i * step + lanes, tl.load(dl.consume_token(data, token) + i * step + lanes))


@triton.jit
def carried_pointers(data, signals, out, right, step, slot):
    lanes = tl.arange(0, 16)
    from_here = data
    signal = signals
    for i in range(4):
        tl.store(dl.symm_at(from_here, right) + lanes, i)
        dl.notify(signal, right, signal=i + 1)
        from_here += step
        signal += slot
    i = 0
    while i < 4:
        token = dl.wait(signals, 1, "sys", "acquire", waitValue=i + 1)
        tl.store(out + lanes, tl.load(dl.consume_token(data, token) + lanes))
        data += step
        out += step
        signals += slot
        i += 1


@triton.jit
def carried_offsets(data, signals, out, right, step, slot):
    lanes = tl.arange(0, 16)
    remote = dl.symm_at(data, right)
    where = 0
    word = slot * 0
    for i in range(4):
        tl.store(remote + where + lanes, i)
        dl.notify(signals + word, right, signal=i + 1)
        where += step
        word += slot
    for i in range(4):
        where -= step
        word -= slot
        token = dl.wait(signals + word, 1, "sys", "acquire", waitValue=4 - i)
        tl.store(out + where + lanes, tl.load(dl.consume_token(data + where, token) + lanes))


@triton.jit
def one_wait_for_all_slots(data, signals, out, right, step, slot):
    lanes = tl.arange(0, 16)
    for i in range(4):
        tl.store(dl.symm_at(data, right) + i * step + lanes, i)
        dl.notify(signals + slot * i, right, signal=9)
    token = dl.wait(signals, 4, "sys", "acquire", waitValue=9)
    ready = dl.consume_token(data, token)
    for i in range(4):
        tl.store(out + i * step + lanes, tl.load(ready + i * step + lanes))


@triton.jit
def program_offsets(data, signals, out, right, step, slot):
    lanes = tl.arange(0, 16)
    i = tl.program_id(0)
    tl.store(dl.symm_at(data + i * step, right) + lanes, i)
    dl.notify(signals + slot * i, right)
    token = dl.wait(signals + slot * i, 1, "sys", "acquire")
    tl.store(out + i * step + lanes, tl.load(dl.consume_token(data + i * step + lanes, token)))


@triton.jit
def block_pointers(data, signals, out, right, step, slot):
    remote = tl.make_block_ptr(dl.symm_at(data, right), (4, 16), (16, 1), (0, 0), (4, 16), (1, 0))
    rows = tl.arange(0, 4)[:, None] + tl.zeros((4, 16), tl.int32)
    tl.store(remote, rows)
    dl.notify(signals + slot, right)
    token = dl.wait(signals + slot, 1, "sys", "acquire")
    here = tl.make_block_ptr(data, (4, 16), (16, 1), (0, 0), (4, 16), (1, 0))
    to = tl.make_block_ptr(out, (4, 16), (16, 1), (0, 0), (4, 16), (1, 0))
    tl.store(to, tl.load(dl.consume_token(here, token)))


@triton.jit
def cast_pointers(data, signals, out, right, step, slot):
    lanes = tl.arange(0, 16)
    # Words of 32 bits in the memory of the 64-bit signals: slots are twice as many elements apart.
    words = signals.to(tl.pointer_type(tl.int32))
    for i in range(4):
        tl.store(dl.symm_at(data, right) + i * step + lanes, i)
        dl.notify(words + 2 * slot * i, right, signal=i + 3)
    for i in range(4):
        token = dl.wait(words + 2 * slot * i, 1, "sys", "acquire", waitValue=i + 3)
        tl.store(out + i * step + lanes, tl.load(dl.consume_token(data, token) + i * step + lanes))


def worker(rank: int, world_size: int, kernel: str, grid: int, arguments: tuple[int, ...]) -> None:
    with symmetric_tensors(rank, world_size, (4 * N, torch.int32), (4 * SLOT, torch.int64)) as (data, signals):
        data.fill_(-1)
        torch.npu.synchronize()
        dist.barrier()
        out = torch.full((4 * N,), -2, dtype=torch.int32).npu()
        globals()[kernel][(grid,)](data, signals, out, (rank + 1) % world_size, *arguments)
        assert out.cpu().reshape(4, N).tolist() == [[i] * N for i in range(4)]


@pytest.mark.dist
@pytest.mark.parametrize("world_size", WORLD_SIZES)
@pytest.mark.parametrize(
    ("kernel", "grid", "arguments"),
    [
        (constant_offsets, 1, ()),
        (argument_offsets, 1, (N, SLOT)),
        (carried_pointers, 1, (N, SLOT)),
        (carried_offsets, 1, (N, SLOT)),
        (one_wait_for_all_slots, 1, (N, SLOT)),
        (program_offsets, 4, (N, SLOT)),
        (block_pointers, 1, (N, SLOT)),
        (cast_pointers, 1, (N, SLOT)),
    ],
    ids=lambda value: value.__name__ if isinstance(value, triton.JITFunction) else "",
)
def test_offsets(dist_test, world_size: int, kernel, grid: int, arguments: tuple[int, ...]) -> None:
    dist_test(worker, world_size=world_size, args=(kernel.__name__, grid, arguments))


@triton.jit
def scattered(data, signals, out, right, one, stride):
    # With `one` equal to 1, Triton makes it a constant: the same kernel must do with and without.
    lanes = tl.arange(0, 16)
    tl.store(dl.symm_at(data + one, right) + lanes * stride, lanes)
    dl.notify(signals + one * 8, one - one + right, signal=one)
    token = dl.wait(signals + one * 8, one, "sys", "acquire", waitValue=one)
    tl.store(out + lanes, tl.load(dl.consume_token(data + one, token) + lanes * stride))


def arguments_equal_to_one(rank: int, world_size: int) -> None:
    for one, stride in ((1, 1), (1, 3), (2, 1), (2, 3)):
        with symmetric_tensors(rank, world_size, (64, torch.float32), (8 * SLOT, torch.int64)) as (data, signals):
            out = torch.zeros(16).npu()
            if one == 2:
                # A wait for two words looks at the next slot too.
                signals[3 * SLOT] = 2
                torch.npu.synchronize()
                dist.barrier()
            scattered[(1,)](data, signals, out, (rank + 1) % world_size, one, stride)
            assert out.tolist() == list(range(16))
            want = torch.zeros(64)
            want[one : one + 16 * stride : stride] = torch.arange(16.0)
            assert torch.equal(data.cpu(), want)


@pytest.mark.dist
@pytest.mark.parametrize("world_size", WORLD_SIZES)
def test_arguments_equal_to_one(dist_test, world_size: int) -> None:
    dist_test(arguments_equal_to_one, world_size=world_size)


@triton.jit
def all_types(data, signals, out, right, N: tl.constexpr):
    lanes = tl.arange(0, N)
    tl.store(dl.symm_at(data + 3, right) + lanes + 2, tl.load(data + 64 + lanes))
    dl.notify(signals, right)
    token = dl.wait(signals, 1, "sys", "acquire")
    tl.store(out + lanes, tl.load(dl.consume_token(data + 5, token) + lanes))


def element_types(rank: int, world_size: int) -> None:
    left = (rank - 1) % world_size
    for dtype in (torch.int8, torch.uint8, torch.int16, torch.float16, torch.bfloat16, torch.float32, torch.int64):
        with symmetric_tensors(rank, world_size, (128, dtype), (SLOT, torch.int64)) as (data, signals):
            data[64:80] = torch.arange(rank, rank + 16).to(dtype).npu()
            out = torch.zeros(16, dtype=dtype).npu()
            torch.npu.synchronize()
            dist.barrier()
            all_types[(1,)](data, signals, out, (rank + 1) % world_size, 16)
            assert torch.equal(out.cpu(), torch.arange(left, left + 16).to(dtype))


@pytest.mark.dist
def test_offsets_are_in_elements_of_every_type(dist_test) -> None:
    dist_test(element_types, world_size=2)


@triton.jit
def by_table(table, data, signals, out, right, N: tl.constexpr):
    lanes = tl.arange(0, N)
    places = tl.load(table + lanes)
    tl.store(dl.symm_at(data, right) + places, lanes)
    dl.notify(signals, right)
    token = dl.wait(signals, 1, "sys", "acquire")
    # Read in another order than written.
    back = tl.load(table + (N - 1 - lanes))
    tl.store(out + lanes, tl.load(dl.consume_token(data, token) + back))


def scatter_and_gather(rank: int, world_size: int) -> None:
    with symmetric_tensors(rank, world_size, (256, torch.int32), (SLOT, torch.int64)) as (data, signals):
        torch.manual_seed(3)
        table = torch.randperm(256, dtype=torch.int32)[:64]
        out = torch.zeros(64, dtype=torch.int32).npu()
        by_table[(1,)](table.npu(), data, signals, out, (rank + 1) % world_size, 64)
        want = torch.zeros(256, dtype=torch.int32)
        want[table.long()] = torch.arange(64, dtype=torch.int32)
        assert torch.equal(data.cpu(), want)
        assert out.tolist() == list(range(63, -1, -1))


@pytest.mark.dist
@pytest.mark.parametrize("world_size", WORLD_SIZES)
def test_offsets_from_a_table(dist_test, world_size: int) -> None:
    dist_test(scatter_and_gather, world_size=world_size)
