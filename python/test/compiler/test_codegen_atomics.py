"""tl.atomic_* are atomic and give the old value, on tiles and words, with and without masks."""

# Arguments of kernels have no Python types, and torch gets its `npu` when it is imported.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

N = 16
LANES = 11


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@triton.jit
def tiles(x, values, old, n, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(values + i)
    added = tl.atomic_add(x + i, v, mask=i < n)
    tl.store(old + i, tl.where(i < n, added, -1))
    tl.atomic_add(x + N + i, v)
    tl.store(old + N + i, tl.atomic_cas(x + 2 * N + i, v, v + 1))
    tl.atomic_min(x + 3 * N + i, v, mask=i < n)
    tl.store(old + 2 * N + i, tl.atomic_xor(x + 4 * N + i, v))
    tl.store(old + 3 * N + i, tl.atomic_xchg(x + 4 * N + i, v))
    tl.store(old + 4 * N + i, tl.atomic_max(x + 5 * N + i, v, sem="relaxed"))
    tl.atomic_and(x + 6 * N + i, v)
    tl.atomic_or(x + 7 * N + i, v)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
def test_tiles_of_integers(dtype: torch.dtype) -> None:
    x, v = torch.randint(-50, 50, (8, N)).to(dtype), torch.randint(-50, 50, (N,)).to(dtype)
    x[2, ::2] = v[::2]
    memory, old = x.npu(), torch.zeros(5, N, dtype=dtype).npu()
    tiles[(1,)](memory, v.npu(), old, LANES, N=N)
    mask = torch.arange(N) < LANES
    swapped = torch.where(x[2] == v, v + 1, x[2])
    smallest = torch.where(mask, torch.minimum(x[3], v), x[3])
    added = torch.where(mask, x[0] + v, x[0])
    rows = [added, x[1] + v, swapped, smallest, v, torch.maximum(x[5], v), x[6] & v, x[7] | v]
    assert torch.equal(memory.cpu(), torch.stack(rows))
    first = torch.where(mask, x[0], torch.full_like(v, -1))
    assert torch.equal(old.cpu(), torch.stack([first, x[2], x[4], x[4] ^ v, x[5]]))


@triton.jit
def float_tiles(x, values, old, n, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(values + i)
    added = tl.atomic_add(x + i, v, mask=i < n)
    tl.store(old + i, tl.where(i < n, added, 0))
    tl.atomic_add(x + N + (i * 7) % N, v)
    tl.atomic_max(x + 2 * N + i, v)
    mine = tl.load(x + 3 * N + i)
    tl.atomic_add(x + 3 * N + i, mine)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_tiles_of_floats(dtype: torch.dtype) -> None:
    x, v = torch.randn(4, N).to(dtype), torch.randn(N).to(dtype)
    memory, old = x.npu(), torch.zeros(N, dtype=dtype).npu()
    float_tiles[(1,)](memory, v.npu(), old, LANES, N=N)
    mask = torch.arange(N) < LANES
    scattered = x[1].clone()
    at = (torch.arange(N) * 7) % N
    scattered[at] = x[1][at] + v
    rows = [torch.where(mask, x[0] + v, x[0]), scattered, torch.maximum(x[2], v), x[3] + x[3]]
    assert torch.equal(memory.cpu(), torch.stack(rows))
    assert torch.equal(old.cpu(), torch.where(mask, x[0], torch.zeros_like(v)))


@triton.jit
def words(x, old, n):
    tl.store(old, tl.atomic_add(x, 1))
    tl.atomic_add(x + 1, 5)
    tl.store(old + 1, tl.atomic_max(x + 2, n, sem="relaxed"))
    tl.store(old + 2, tl.atomic_xchg(x + 3, n, sem="acquire"))
    tl.store(old + 3, tl.atomic_cas(x + 4, 0, n, sem="release"))
    tl.store(old + 4, tl.atomic_cas(x + 5, 0, n))
    mine = tl.load(x + 6)
    tl.atomic_add(x + 6, mine)
    tl.store(old + 5, mine)


def test_words() -> None:
    memory = torch.tensor([3, 4, 5, 6, 0, 9, 11], dtype=torch.int32).npu()
    old = torch.zeros(6, dtype=torch.int32).npu()
    words[(1,)](memory, old, 8)
    assert memory.cpu().tolist() == [4, 9, 8, 8, 8, 9, 22]
    assert old.cpu().tolist() == [3, 5, 6, 0, 9, 11]


@triton.jit
def count(counter, seen, BLOCK: tl.constexpr):
    for i in range(BLOCK):
        tl.store(seen + tl.program_id(0) * BLOCK + i, tl.atomic_add(counter, 1))


def test_each_program_gets_old_values_of_its_own() -> None:
    counter, seen = torch.zeros(1, dtype=torch.int32).npu(), torch.zeros(64 * 32, dtype=torch.int32).npu()
    count[(64,)](counter, seen, BLOCK=32)
    assert counter.cpu().item() == 64 * 32
    assert seen.cpu().sort().values.tolist() == list(range(64 * 32))


@triton.jit
def guarded_add(lock, value):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(value, tl.load(value) + 1)
    tl.atomic_xchg(lock, 0)


def test_spin_lock_around_a_plain_add() -> None:
    lock, value = torch.zeros(1, dtype=torch.int32).npu(), torch.zeros(1, dtype=torch.int32).npu()
    guarded_add[(200,)](lock, value)
    assert (lock.cpu().item(), value.cpu().item()) == (0, 200)


@triton.jit
def hand_over(flag, order, N: tl.constexpr):
    me = tl.program_id(0)
    turn = tl.atomic_add(flag, 0)
    while turn != N - 1 - me:
        turn = tl.atomic_add(flag, 0)
    tl.store(order + me, turn)
    tl.atomic_add(flag, 1)


def test_programs_that_spin_let_later_programs_run() -> None:
    flag, order = torch.zeros(1, dtype=torch.int32).npu(), torch.zeros(8, dtype=torch.int32).npu()
    hand_over[(8,)](flag, order, N=8)
    assert order.cpu().tolist() == list(range(7, -1, -1))
