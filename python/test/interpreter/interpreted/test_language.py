"""What a kernel may call, interpreted: held against torch."""

# Arguments of kernels have no Python types, and torch gets its `npu` when it is imported.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra.cann import libdevice
from triton.language.extra.cann.extension import (
    compile_hint,
    extract_slice,
    flip,
    get_element,
    insert_slice,
    sort,
    sub_vec_id,
    sync_block_all,
)

from triton_dist.language.extra.ascend.algorithm import gemm_swizzle2d_Nz

N = 16


@triton.jit
def doubles(x, y, n, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lanes < n
    tl.store(y + lanes, tl.load(x + lanes, mask=inside) * 2 + 1, mask=inside)


@triton.jit
def product(a, b, c, SIZE: tl.constexpr):
    row = tl.arange(0, SIZE)
    tile = row[:, None] * SIZE + row[None, :]
    tl.store(c + tile, tl.dot(tl.load(a + tile), tl.load(b + tile)))


@triton.jit
def ascend(x, y, SIZE: tl.constexpr):
    lanes = tl.arange(0, SIZE)
    value = tl.load(x + lanes)
    compile_hint(value, "a_hint")
    sync_block_all("all", 0)
    tl.store(y + lanes, sort(value, 0, True))
    front = extract_slice(value, (1,), (SIZE // 2,), (1,))
    tl.store(y + SIZE + lanes, insert_slice(flip(value, 0), front, (0,), (SIZE // 2,), (1,)))
    tl.store(y + 2 * SIZE + lanes, libdevice.relu(value) + sub_vec_id())
    tl.store(y + 3 * SIZE, get_element(value, (2,)))


@triton.jit
def tiles(rows, columns, COUNT: tl.constexpr):
    for step in range(COUNT):
        row, column = gemm_swizzle2d_Nz(step, 3, 4, 1, 1)
        tl.store(rows + step, row)
        tl.store(columns + step, column)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int32])
def test_arithmetic(dtype: torch.dtype) -> None:
    x = torch.randint(-50, 50, (100,)).to(dtype)
    y = torch.zeros(100, dtype=dtype).npu()
    doubles[(2,)](x.npu(), y, 100, BLOCK=64)
    assert torch.equal(y.cpu(), x * 2 + 1)


def test_options_of_a_compilation_are_taken_and_others_refused() -> None:
    x, y = torch.ones(4).npu(), torch.zeros(4).npu()
    doubles[(1,)](x, y, 4, BLOCK=4, num_warps=1, multibuffer=True)
    assert y.tolist() == [3.0] * 4
    with pytest.raises(TypeError, match="colour"):
        doubles[(1,)](x, y, 4, BLOCK=4, colour="blue")


def test_a_grid_may_be_a_function_of_the_arguments() -> None:
    x, y = torch.ones(100).npu(), torch.zeros(100).npu()
    doubles[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, y, 100, BLOCK=16)
    assert y.sum().item() == 300
    with pytest.raises(ValueError, match=r"grid \(1, -1\)"):
        doubles[(1, -1)](x, y, 100, BLOCK=16)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_dot(dtype: torch.dtype) -> None:
    a, b = torch.randn(2, N, N).to(dtype)
    c = torch.zeros(N, N).npu()
    product[(1,)](a.npu(), b.npu(), c, N)
    torch.testing.assert_close(c.cpu(), a.float() @ b.float(), rtol=1e-5, atol=1e-5)


def test_operations_of_ascend() -> None:
    x = torch.randn(N)
    y = torch.zeros(3 * N + 1).npu()
    ascend[(1,)](x.npu(), y, N)
    sorted_, inserted, positive = y.cpu()[: 3 * N].reshape(3, N)
    assert torch.equal(sorted_, x.sort(descending=True).values)
    assert torch.equal(inserted, torch.cat([x[1 : N // 2 + 1], x.flip(0)[N // 2 :]]))
    assert torch.equal(positive, x.relu())
    assert y[3 * N].item() == x[2].item()


def test_functions_that_kernels_call() -> None:
    rows, columns = (torch.full((12,), -1, dtype=torch.int32).npu() for _ in range(2))
    tiles[(1,)](rows, columns, 12)
    seen = set(zip(rows.tolist(), columns.tolist(), strict=True))
    assert seen == {(row, column) for row in range(3) for column in range(4)}
