"""Kernels touch the memory they should and nothing else: masks, strides, indirect access, loops, branches."""

# Arguments of kernels have no Python types, and torch gets its `npu` when it is imported.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@triton.jit
def block_pointers(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    source = tl.make_block_ptr(x, (M, N), (N, 1), (row, column), (BM, BN), (1, 0))
    target = tl.make_block_ptr(out, (M, N), (N, 1), (row, column), (BM, BN), (1, 0))
    v = tl.load(source, boundary_check=(0, 1), padding_option="zero")
    tl.store(target, v * 2, boundary_check=(0, 1))


def test_block_pointers_stop_at_the_bounds() -> None:
    x = torch.randn(50, 70)
    out = torch.zeros(60, 70).npu()
    block_pointers[(4, 5)](x.npu(), out, 50, 70, BM=16, BN=16)
    assert torch.equal(out.cpu()[:50], x * 2)
    assert not out.cpu()[50:].any()


@triton.jit
def masked_tile(x, out, M, N, stride, BM: tl.constexpr, BN: tl.constexpr):
    rows, columns = tl.arange(0, BM), tl.arange(0, BN)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    v = tl.load(x + rows[:, None] * stride + columns[None, :], mask=mask, other=3.0)
    tl.store(out + rows[:, None] * BN + columns[None, :], v)


@pytest.mark.parametrize(("rows", "columns"), [(10, 20), (16, 32), (0, 7), (1, 1)])
def test_lanes_that_a_mask_leaves_out_get_the_other_value(rows: int, columns: int) -> None:
    x = torch.randn(16, 40)
    out = torch.zeros(16, 32).npu()
    masked_tile[(1,)](x.npu(), out, rows, columns, 40, BM=16, BN=32)
    want = torch.full((16, 32), 3.0)
    want[:rows, :columns] = x[:rows, :columns]
    assert torch.equal(out.cpu(), want)


@triton.jit
def strided(x, out, stride, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i * stride))
    tl.store(out + N + i, tl.load(x + (N - 1 - i)))


def test_strides_that_are_arguments_or_negative() -> None:
    x, out = torch.randn(64), torch.zeros(2, 16).npu()
    strided[(1,)](x.npu(), out, 3, N=16)
    assert torch.equal(out.cpu(), torch.stack([x[:48:3], x[:16].flip(0)]))


@triton.jit
def gather_scatter(x, index, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    at = tl.load(index + i, mask=i < n, other=0)
    tl.store(out + at, tl.load(x + at, mask=i < n) + 1, mask=i < n)


def test_indirect_loads_and_stores() -> None:
    x, index = torch.randn(64), torch.randperm(64).int()
    out = torch.zeros(64).npu()
    gather_scatter[(1,)](x.npu(), index.npu(), out, 50, N=64)
    chosen = index[:50].long()
    want = torch.zeros(64)
    want[chosen] = x[chosen] + 1
    assert torch.equal(out.cpu(), want)


@triton.jit
def carried_tensors(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = a * 2
    row = x
    for j in range(n):
        old = a
        a = b
        b = old + 1
        total = tl.sum(a, 0)
        for _ in range(j):
            b = b + total
        row += N
        b += tl.load(row + i)
    tl.store(out + i, a)
    tl.store(out + N + i, b)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_tensors_and_pointers_carried_crosswise_through_loops(n: int) -> None:
    x, out = torch.randn(6, 16), torch.zeros(2, 16).npu()
    carried_tensors[(1,)](x.npu(), out, n, N=16)
    a, b = x[0], x[0] * 2
    for j in range(n):
        a, b = b, a + 1
        b = b + a.sum() * j + x[j + 1]
    torch.testing.assert_close(out.cpu(), torch.stack([a, b]), rtol=1e-4, atol=1e-4)


@triton.jit
def carried_views(x, out, n, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + at)
    b = a
    c = a
    for _ in range(n):
        b = tl.trans(b) + a
        a, c = c, a
        c = c + tl.trans(c)
    tl.store(out + at, a)
    tl.store(out + N * N + at, b)
    tl.store(out + 2 * N * N + at, c)


def test_one_tile_that_starts_three_carried_tensors() -> None:
    x, out = torch.randn(16, 16), torch.zeros(3, 16, 16).npu()
    carried_views[(1,)](x.npu(), out, 3, N=16)
    a = b = c = x
    for _ in range(3):
        b = b.t() + a
        a, c = c, a
        c = c + c.t()
    torch.testing.assert_close(out.cpu(), torch.stack([a, b, c]), rtol=1e-4, atol=1e-4)


@triton.jit
def tile_in_while(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    j = 0
    while j < n:
        a = a * 2 + 1
        j += 1
    tl.store(out + i, a)


@pytest.mark.parametrize("n", [0, 3])
def test_tensor_carried_through_a_while_loop(n: int) -> None:
    x, out = torch.randn(16), torch.zeros(16).npu()
    tile_in_while[(1,)](x.npu(), out, n, N=16)
    want = x
    for _ in range(n):
        want = want * 2 + 1
    torch.testing.assert_close(out.cpu(), want)


@triton.jit
def sum_until(x, out, n):
    i = 0
    total = 0
    while i < n:
        total += tl.load(x + i)
        i += 2
        if total > 100:
            i = n
    tl.store(out, total)


def test_while_loop_with_a_way_out() -> None:
    x, out = torch.arange(50, dtype=torch.int32), torch.zeros(1, dtype=torch.int32).npu()
    sum_until[(1,)](x.npu(), out, 50)
    assert out.cpu().item() == sum(range(0, 22, 2))


@triton.jit
def either_way(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    if n > 3:
        a = a * 2
        extra = n
    else:
        a = a + 1
        extra = 7
        tl.store(out + N, extra)
    tl.store(out + i, a + extra)


@pytest.mark.parametrize("n", [2, 5])
def test_branches_give_tensors_and_store(n: int) -> None:
    x, out = torch.arange(64, dtype=torch.int32), torch.zeros(65, dtype=torch.int32).npu()
    either_way[(1,)](x.npu(), out, n, N=64)
    want = x * 2 + n if n > 3 else x + 8
    assert torch.equal(out.cpu()[:64], want)
    assert out.cpu()[64].item() == (0 if n > 3 else 7)


@triton.jit
def product_and_sum(a, b):
    return a * b, a + b


@triton.jit
def unrolled(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    total = a
    for j in tl.static_range(3):
        product, added = product_and_sum(a, total)
        total = product + added * j
    tl.store(out + i, total)


def test_device_function_with_two_results_in_a_static_range() -> None:
    x, out = torch.randn(16), torch.zeros(16).npu()
    unrolled[(1,)](x.npu(), out, N=16)
    want = x
    for j in range(3):
        want = x * want + (x + want) * j
    torch.testing.assert_close(out.cpu(), want, rtol=1e-5, atol=1e-5)


@triton.jit
def early_return(x, out, n):
    i = tl.program_id(0)
    if i >= n:
        return
    tl.store(out + i, tl.load(x + i) + 1)


def test_programs_that_return_early() -> None:
    x, out = torch.randn(8), torch.zeros(8).npu()
    early_return[(8,)](x.npu(), out, 5)
    want = torch.zeros(8)
    want[:5] = x[:5] + 1
    assert torch.equal(out.cpu(), want)


@triton.jit
def report_arguments(out, small, large, real, flag):
    row = out + 8 * (tl.program_id(0) + 3 * (tl.program_id(1) + 2 * tl.program_id(2)))
    tl.store(row, small.to(tl.float32))
    tl.store(row + 1, (large >> 32).to(tl.float32))
    tl.store(row + 2, real)
    tl.store(row + 3, flag.to(tl.float32))
    tl.store(row + 4, (tl.num_programs(0) + 10 * tl.num_programs(1) + 100 * tl.num_programs(2)).to(tl.float32))
    tl.store(row + 5, (tl.program_id(0) + 10 * tl.program_id(1) + 100 * tl.program_id(2)).to(tl.float32))


def test_scalar_arguments_and_the_place_in_the_grid() -> None:
    out = torch.zeros(2, 2, 3, 8).npu()
    report_arguments[(3, 2, 2)](out, -5, 7 << 32, 1.5, True)
    for z in range(2):
        for y in range(2):
            for x in range(3):
                row = out.cpu()[z, y, x].tolist()
                assert row[:6] == [-5, 7, 1.5, 1, 223, x + 10 * y + 100 * z]


@triton.jit
def many_iterations(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    for _ in range(n):
        total = tl.maximum(total, tl.load(x + i)) + tl.sum(tl.load(x + N + i), 0)
    tl.store(out + i, total)


def test_long_loop_over_large_tiles_does_not_grow() -> None:
    resident = _resident_bytes()
    x, out = torch.ones(8192), torch.zeros(4096).npu()
    many_iterations[(1,)](x.npu(), out, 2000, N=4096)
    assert (out.cpu() == 1 + 4096 * 2000).all()
    # One kept tile of 16 KiB an iteration would be 32 MiB.
    assert _resident_bytes() - resident < 24 << 20


def _resident_bytes() -> int:
    import psutil

    return int(psutil.Process().memory_info().rss)
