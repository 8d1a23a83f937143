"""Kernels with tl.dot and vector work: both vector cores of a program, and effects that happen once."""

# Arguments of kernels have no Python types, and torch gets its `npu` when it is imported.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra.cann.extension import extract_slice, insert_slice, sub_vec_id, sub_vec_num

ROWS = COLUMNS = 32


@pytest.fixture
def operands() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    return torch.randn(ROWS, COLUMNS).half(), torch.randn(COLUMNS, COLUMNS).half()


def product(operands: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    a, b = operands
    return a.float() @ b.float()


@triton.jit
def each_stores_its_half(a, b, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tile = i[:, None] * N + i[None, :]
    result = tl.dot(tl.load(a + tile), tl.load(b + tile))
    first = sub_vec_id() * (N // 2)
    half = extract_slice(result, (first, 0), (N // 2, N), (1, 1))
    rows = first + tl.arange(0, N // 2)
    where = rows[:, None] * N + i[None, :]
    tl.store(out + where, half + tl.load(out + where))


def test_each_vector_core_does_its_half(operands) -> None:
    out = torch.ones(ROWS, COLUMNS).npu()
    each_stores_its_half[1,](*(x.npu() for x in operands), out, ROWS)
    torch.testing.assert_close(out.cpu(), product(operands) + 1)


@triton.jit
def effects(a, b, out, counts, N: tl.constexpr):
    i = tl.arange(0, N)
    tile = i[:, None] * N + i[None, :]
    tl.store(out + tile, tl.dot(tl.load(a + tile), tl.load(b + tile)))
    core = sub_vec_id()
    tl.atomic_add(counts, 1)  # the program's
    tl.atomic_add(counts + 1 + core, 1)  # each core's own
    if core == 1:
        tl.atomic_add(counts + 3, 1)
    else:
        tl.atomic_add(counts + 4, 10)
    for turn in range(5):
        tl.atomic_add(counts + 5, 1)
        if turn > core:
            tl.atomic_add(counts + 6, 1)


def test_an_effect_happens_once_unless_it_depends_on_the_core(operands) -> None:
    out = torch.zeros(ROWS, COLUMNS).npu()
    counts = torch.zeros(8, dtype=torch.int32).npu()
    effects[3,](*(x.npu() for x in operands), out, counts, ROWS)
    one_program = (1, 1, 1, 1, 10, 5, 4 + 3, 0)
    assert counts.tolist() == [3 * count for count in one_program]
    torch.testing.assert_close(out.cpu(), product(operands))


@triton.jit
def loops(a, b, out, sums, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tile = i[:, None] * N + i[None, :]
    tl.store(out + tile, tl.dot(tl.load(a + tile), tl.load(b + tile)))
    core = sub_vec_id()
    total = 0
    common = 0
    for k in range(n):
        total += core * k
        common += k
    tl.store(sums + core, total)
    tl.store(sums + 2, common)
    left = n
    steps = 0
    while left > 0:
        left -= 1
        steps += core + 1
    tl.store(sums + 3 + core, steps)
    left = n + core  # how often it runs depends on the core too
    while left > 0:
        left -= 1
        tl.atomic_add(sums + 5 + core, 1)
    if n > 3:  # noqa: SIM108 - a condition of the kernel's own
        chosen = core + 20
    else:
        chosen = 7
    tl.store(sums + 8 + core, chosen)


@pytest.mark.parametrize("n", [3, 5])
def test_loops_and_conditions_carry_what_differs(operands, n: int) -> None:
    out = torch.zeros(ROWS, COLUMNS).npu()
    sums = torch.zeros(10, dtype=torch.int32).npu()
    loops[1,](*(x.npu() for x in operands), out, sums, n, ROWS)
    below = n * (n - 1) // 2
    chosen = [20, 21] if n > 3 else [7, 7]
    assert sums.tolist() == [0, below, below, n, 2 * n, n, n + 1, 0, *chosen]


@triton.jit
def vector_only(out):
    tl.atomic_add(out + sub_vec_id(), sub_vec_num())


def test_a_vector_kernel_has_one_core_a_program() -> None:
    out = torch.zeros(2, dtype=torch.int32).npu()
    vector_only[5,](out)
    assert out.tolist() == [5, 0]


@triton.jit
def halves_into_dot(a, b, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tile = i[:, None] * N + i[None, :]
    left = tl.load(a + tile)
    first = sub_vec_id() * (N // 2)
    half = extract_slice(left, (first, 0), (N // 2, N), (1, 1))
    left = insert_slice(left, half * 2, (first, 0), (N // 2, N), (1, 1))
    tl.store(out + tile, tl.dot(left, tl.load(b + tile)))


@triton.jit
def counts_cores(a, b, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tile = i[:, None] * N + i[None, :]
    tl.store(out + tile, tl.dot(tl.load(a + tile), tl.load(b + tile)) * sub_vec_num())


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (halves_into_dot, "tl.dot of values that depend on sub_vec_id\\(\\) cannot be simulated"),
        (counts_cores, "write 2, the number of vector cores of a mixed kernel"),
    ],
)
def test_what_cannot_be_simulated_is_refused(operands, kernel, text: str) -> None:
    out = torch.zeros(ROWS, COLUMNS).npu()
    with pytest.raises(Exception, match=text) as raised:
        kernel[1,](*(x.npu() for x in operands), out, ROWS)
    assert "test_mixed_kernels.py:" in str(raised.value)
