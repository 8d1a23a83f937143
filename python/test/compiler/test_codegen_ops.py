"""Kernels of one program compute what torch computes: arithmetic, conversions, reductions, dots, shapes."""

# Arguments of kernels have no Python types, and torch gets its `npu` when it is imported.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

FLOATS = [torch.float32, torch.float16, torch.bfloat16]
INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64]


def randn(*shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> torch.Tensor:
    return (torch.randn(*shape) * scale).to(dtype)


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A tensor on the NPU whose content no test expects."""
    return torch.full(shape, 77, dtype=torch.float32).to(dtype).to("npu")


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS, ids=str)
def test_add_with_a_mask_at_the_end(dtype: torch.dtype) -> None:
    x, y = randn(1000, dtype=dtype, scale=10), randn(1000, dtype=dtype, scale=10)
    out = empty(1024, dtype=dtype)
    untouched = out[1000:].cpu()
    add[(4,)](x.npu(), y.npu(), out, 1000, BLOCK=256)
    torch.testing.assert_close(out[:1000].cpu(), x + y, rtol=0, atol=0)
    assert torch.equal(out[1000:].cpu(), untouched)


@triton.jit
def narrow_arithmetic(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, v * v + v)
    tl.store(out + N + i, v / (v + 1))
    tl.store(out + 2 * N + i, tl.maximum(v, -v))
    tl.store(out + 3 * N + i, tl.where(v < 0.5, v, v - 1))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_each_operation_on_narrow_floats_rounds(dtype: torch.dtype) -> None:
    x = torch.rand(64).to(dtype)
    out = empty(4, 64, dtype=dtype)
    narrow_arithmetic[(1,)](x.npu(), out, N=64)
    expected = torch.stack([x * x + x, x / (x + 1), x, torch.where(x < 0.5, x, x - 1)])
    torch.testing.assert_close(out.cpu(), expected, rtol=0, atol=0)


@triton.jit
def convert(x, half, brain, back_half, back_brain, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(half + i, v.to(tl.float16))
    tl.store(brain + i, v.to(tl.bfloat16))
    tl.store(back_half + i, tl.load(half + i).to(tl.float32))
    tl.store(back_brain + i, tl.load(brain + i).to(tl.float32))


def test_conversions_round_to_even_and_keep_special_values() -> None:
    inf, nan = float("inf"), float("nan")
    tiny = [1e-8, -6e-8, 1e-40]
    edges = [65504, 65519, 65520, 70000, 3.3895e38, 3.4e38, 1.00390625, 1.01171875]
    x = torch.tensor([0.0, -0.0, inf, -inf, nan, *tiny, *edges])
    n = x.numel()
    half, brain = empty(n, dtype=torch.float16), empty(n, dtype=torch.bfloat16)
    back_half, back_brain = empty(n), empty(n)
    convert[(1,)](x.npu(), half, brain, back_half, back_brain, N=n)
    for got, want in [
        (half, x.half()),
        (brain, x.bfloat16()),
        (back_half, x.half().float()),
        (back_brain, x.bfloat16().float()),
    ]:
        torch.testing.assert_close(got.cpu(), want, rtol=0, atol=0, equal_nan=True)


@triton.jit
def float_to_integers(x, i8, i32, i64, back, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(i8 + i, v.to(tl.int8))
    tl.store(i32 + i, v.to(tl.int32))
    tl.store(i64 + i, v.to(tl.int64))
    tl.store(back + i, tl.load(i64 + i).to(tl.float32))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats_to_integers_and_back(dtype: torch.dtype) -> None:
    x = randn(64, dtype=dtype, scale=30)
    outs = [empty(64, dtype=kind) for kind in (torch.int8, torch.int32, torch.int64, torch.float32)]
    float_to_integers[(1,)](x.npu(), *outs, N=64)
    for out in outs[:3]:
        assert torch.equal(out.cpu(), x.to(out.dtype))
    assert torch.equal(outs[3].cpu(), x.long().float())


@triton.jit
def integer_arithmetic(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, a // b)
    tl.store(out + N + i, a % b)
    tl.store(out + 2 * N + i, (a & b) | (a ^ 5))
    tl.store(out + 3 * N + i, a << 2)
    tl.store(out + 4 * N + i, a >> 1)
    tl.store(out + 5 * N + i, tl.minimum(a, b))
    tl.store(out + 6 * N + i, tl.where(a > b, ~a, -a))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_arithmetic(dtype: torch.dtype) -> None:
    a, b = torch.randint(0, 30, (64,)).to(dtype), torch.randint(1, 9, (64,)).to(dtype)
    out = empty(7, 64, dtype=dtype)
    integer_arithmetic[(1,)](a.npu(), b.npu(), out, N=64)
    where = torch.where(a > b, ~a, -a)
    rows = [a // b, a % b, (a & b) | (a ^ 5), a << 2, a >> 1, torch.minimum(a, b), where]
    assert torch.equal(out.cpu(), torch.stack(rows))


@triton.jit
def masked_division(x, y, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i, mask=i < n, other=0)
    tl.store(out + i, a // b, mask=i < n)
    tl.store(out + N + i, a % b, mask=i < n)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_division_by_zero_in_lanes_that_a_mask_leaves_out(dtype: torch.dtype) -> None:
    a, b = torch.randint(-90, 90, (64,)).to(dtype), torch.randint(1, 9, (64,)).to(dtype)
    a[0], b[0] = torch.iinfo(dtype).min, -1
    out = empty(2, 64, dtype=dtype)
    masked_division[(1,)](a.npu(), b.npu(), out, 50, N=64)
    # The first lane holds a quotient that has no number; torch itself would not survive it.
    a, b = a[1:50], b[1:50]
    quotient = torch.div(a, b, rounding_mode="trunc")
    assert torch.equal(out.cpu()[0, 1:50], quotient)
    assert torch.equal(out.cpu()[1, 1:50], a - quotient * b)


@triton.jit
def select_by_bool(x, mask, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, tl.where(tl.load(mask + i) != 0, v, 0))
    tl.store(mask + i, v > 0)


def test_bool_tensors_are_bytes() -> None:
    x, mask = randn(64), torch.rand(64) > 0.5
    out, on_npu = empty(64), mask.npu()
    select_by_bool[(1,)](x.npu(), on_npu, out, N=64)
    assert torch.equal(out.cpu(), torch.where(mask, x, torch.zeros(())))
    assert torch.equal(on_npu.cpu(), x > 0)


@triton.jit
def unary_functions(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, tl.exp(v))
    tl.store(out + N + i, tl.log(v))
    tl.store(out + 2 * N + i, tl.sqrt(v))
    tl.store(out + 3 * N + i, tl.rsqrt(v))
    tl.store(out + 4 * N + i, tl.sin(v))
    tl.store(out + 5 * N + i, tl.cos(v))
    tl.store(out + 6 * N + i, tl.erf(v))
    tl.store(out + 7 * N + i, tl.exp2(v))
    tl.store(out + 8 * N + i, tl.log2(v))
    tl.store(out + 9 * N + i, tl.floor(v * 7))
    tl.store(out + 10 * N + i, tl.sigmoid(v))
    tl.store(out + 11 * N + i, tl.math.tanh(v))
    tl.store(out + 12 * N + i, tl.math.pow(v, v))
    tl.store(out + 13 * N + i, tl.abs(-v))


def test_functions_of_one_value() -> None:
    x = torch.rand(200) + 0.1
    x = torch.cat([x, torch.tensor([20.0, 1e-3])])[:128]
    out = empty(14, 128)
    unary_functions[(1,)](x.npu(), out, N=128)
    simple = [x.exp(), x.log(), x.sqrt(), x.rsqrt(), x.sin(), x.cos(), x.erf(), x.exp2(), x.log2()]
    rest = [(x * 7).floor(), x.sigmoid(), x.tanh(), x.pow(x), x]
    torch.testing.assert_close(out.cpu(), torch.stack(simple + rest), rtol=1e-5, atol=1e-6)


@triton.jit
def reductions(x, sums, maxima, minima, places, totals, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    v = tl.load(x + rows[:, None] * N + columns[None, :])
    tl.store(sums + rows, tl.sum(v, 1))
    tl.store(maxima + columns, tl.max(v, 0))
    tl.store(minima + rows, tl.min(v, 1))
    tl.store(places + columns, tl.argmax(v, 0))
    tl.store(totals, tl.sum(v))
    tl.store(totals + 1, tl.max(v))


def test_reductions_along_either_dimension_and_both() -> None:
    x = randn(16, 32)
    sums, maxima, minima, totals = empty(16), empty(32), empty(16), empty(2)
    places = empty(32, dtype=torch.int32)
    reductions[(1,)](x.npu(), sums, maxima, minima, places, totals, M=16, N=32)
    torch.testing.assert_close(sums.cpu(), x.sum(1), rtol=1e-5, atol=1e-5)
    assert torch.equal(maxima.cpu(), x.max(0).values)
    assert torch.equal(minima.cpu(), x.min(1).values)
    assert torch.equal(places.cpu().long(), x.argmax(0))
    torch.testing.assert_close(totals.cpu(), torch.stack([x.sum(), x.max()]), rtol=1e-5, atol=1e-5)


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def reduce_with_function(x, out, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    v = tl.load(x + rows[:, None] * N + columns[None, :])
    tl.store(out + rows, tl.reduce(v, 1, larger))


def test_reduction_by_a_function_of_the_kernel() -> None:
    x, out = randn(8, 16), empty(8)
    reduce_with_function[(1,)](x.npu(), out, M=8, N=16)
    assert torch.equal(out.cpu(), x.max(1).values)


@triton.jit
def middle_sum(x, out, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    a, b, c = tl.arange(0, A), tl.arange(0, B), tl.arange(0, C)
    v = tl.load(x + a[:, None, None] * (B * C) + b[None, :, None] * C + c[None, None, :])
    tl.store(out + a[:, None] * C + c[None, :], tl.sum(v, 1))


def test_reduction_of_the_middle_dimension() -> None:
    x, out = randn(4, 8, 16), empty(4, 16)
    middle_sum[(1,)](x.npu(), out, A=4, B=8, C=16)
    torch.testing.assert_close(out.cpu(), x.sum(1), rtol=1e-5, atol=1e-5)


@triton.jit
def softmax(x, out, n, N: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, N)
    v = tl.load(x + row * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


def test_softmax() -> None:
    x, out = randn(8, 100), empty(8, 100)
    softmax[(8,)](x.npu(), out, 100, N=128)
    torch.testing.assert_close(out.cpu(), x.softmax(1))


@triton.jit
def layer_norm(x, weight, bias, out, n, eps, N: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, N)
    v = tl.load(x + row * n + i, mask=i < n, other=0.0).to(tl.float32)
    d = tl.where(i < n, v - tl.sum(v, 0) / n, 0.0)
    scale = 1 / tl.sqrt(tl.sum(d * d, 0) / n + eps)
    w, b = tl.load(weight + i, mask=i < n), tl.load(bias + i, mask=i < n)
    tl.store(out + row * n + i, d * scale * w + b, mask=i < n)


def test_layer_norm() -> None:
    x, weight, bias, out = randn(5, 100), randn(100), randn(100), empty(5, 100)
    layer_norm[(5,)](x.npu(), weight.npu(), bias.npu(), out, 100, 1e-5, N=128)
    want = torch.nn.functional.layer_norm(x, (100,), weight, bias, 1e-5)
    torch.testing.assert_close(out.cpu(), want, rtol=1e-4, atol=1e-5)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_tile = a + rows[:, None] * K + depth[None, :]
    b_tile = b + depth[:, None] * N + columns[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(tl.cdiv(K, BK)):
        left = K - k * BK
        x = tl.load(a_tile, mask=(rows[:, None] < M) & (depth[None, :] < left), other=0.0)
        y = tl.load(b_tile, mask=(depth[:, None] < left) & (columns[None, :] < N), other=0.0)
        total += tl.dot(x, y)
        a_tile += BK
        b_tile += BK * N
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(c.dtype.element_ty), mask=mask)


@pytest.mark.parametrize(("dtype", "tolerance"), [*zip(FLOATS, [1e-4, 5e-3, 5e-2], strict=True)], ids=str)
def test_matmul_of_sizes_that_no_tile_divides(dtype: torch.dtype, tolerance: float) -> None:
    a, b = randn(70, 50, dtype=dtype), randn(50, 90, dtype=dtype)
    c = empty(70, 90, dtype=dtype)
    matmul[(3, 3)](a.npu(), b.npu(), c, 70, 90, 50, BM=32, BN=32, BK=16)
    want = a.float() @ b.float()
    torch.testing.assert_close(c.cpu().float(), want, rtol=tolerance, atol=tolerance * 10)


@triton.jit
def dot_of_integers(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + rows[:, None] * K + depth[None, :])
    y = tl.load(b + depth[:, None] * N + columns[None, :])
    tl.store(c + rows[:, None] * N + columns[None, :], tl.dot(x, y, out_dtype=tl.int32))


def test_dot_of_bytes_sums_in_32_bits() -> None:
    a = torch.randint(-128, 127, (32, 64), dtype=torch.int8)
    b = torch.randint(-128, 127, (64, 16), dtype=torch.int8)
    c = empty(32, 16, dtype=torch.int32)
    dot_of_integers[(1,)](a.npu(), b.npu(), c, M=32, N=16, K=64)
    assert torch.equal(c.cpu(), a.int() @ b.int())


@triton.jit
def batched_dot(a, b, c, B: tl.constexpr, M: tl.constexpr):
    batch, i = tl.arange(0, B), tl.arange(0, M)
    at = batch[:, None, None] * (M * M) + i[None, :, None] * M + i[None, None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))


def test_dot_of_three_dimensions() -> None:
    a, b, c = randn(4, 16, 16), randn(4, 16, 16), empty(4, 16, 16)
    batched_dot[(1,)](a.npu(), b.npu(), c, B=4, M=16)
    torch.testing.assert_close(c.cpu(), a @ b, rtol=1e-4, atol=1e-4)


@triton.jit
def transposed_dots(a, b, c, M: tl.constexpr):
    i = tl.arange(0, M)
    at = i[:, None] * M + i[None, :]
    x, y = tl.load(a + at), tl.load(b + at)
    total = tl.dot(x, tl.trans(y))
    total = tl.dot(tl.trans(total), x, total)
    tl.store(c + at, total)


def test_dot_of_transposed_tiles_and_into_its_own_operand() -> None:
    a, b, c = randn(32, 32), randn(32, 32), empty(32, 32)
    transposed_dots[(1,)](a.npu(), b.npu(), c, M=32)
    first = a @ b.t()
    torch.testing.assert_close(c.cpu(), first.t() @ a + first, rtol=1e-3, atol=1e-3)


@triton.jit
def attention(q, k, v, out, n, scale, B: tl.constexpr, D: tl.constexpr):
    rows, d = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + d[None, :])
    top = tl.full((B,), -float("inf"), tl.float32)
    weight = tl.zeros((B,), tl.float32)
    total = tl.zeros((B, D), tl.float32)
    for start in range(0, n, B):
        at = (start + tl.arange(0, B))[:, None] * D + d[None, :]
        values = tl.load(v + at)
        scores = tl.dot(query, tl.trans(tl.load(k + at))) * scale
        new_top = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp(scores - new_top[:, None])
        shrink = tl.exp(top - new_top)
        weight = weight * shrink + tl.sum(p, 1)
        total = total * shrink[:, None] + tl.dot(p.to(values.dtype), values)
        top = new_top
    result = total / weight[:, None]
    tl.store(out + rows[:, None] * D + d[None, :], result.to(out.dtype.element_ty))


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.float16, 1e-2)], ids=str)
def test_attention_with_a_running_softmax(dtype: torch.dtype, tolerance: float) -> None:
    q, k, v = (randn(64, 32, dtype=dtype) for _ in range(3))
    out = empty(64, 32, dtype=dtype)
    attention[(4,)](q.npu(), k.npu(), v.npu(), out, 64, 0.2, B=16, D=32)
    want = ((q.float() @ k.float().t()) * 0.2).softmax(1) @ v.float()
    torch.testing.assert_close(out.cpu().float(), want, rtol=tolerance, atol=tolerance)


@triton.jit
def reshapes(x, out, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    at = rows[:, None] * N + columns[None, :]
    turned = columns[:, None] * M + rows[None, :]
    v = tl.load(x + at)
    tl.store(out + turned, tl.trans(v))
    tl.store(out + M * N + turned, tl.reshape(v, (N, M)))
    halves = tl.permute(tl.reshape(v, (2, M // 2, N)), (1, 0, 2))
    tl.store(out + 2 * M * N + at, tl.reshape(halves, (M, N)))


def test_transpose_reshape_and_permute() -> None:
    x, out = randn(16, 32), empty(3, 16 * 32)
    reshapes[(1,)](x.npu(), out, M=16, N=32)
    got = out.cpu()
    assert torch.equal(got[0].view(32, 16), x.t())
    assert torch.equal(got[1], x.view(-1))
    assert torch.equal(got[2].view(16, 32), x.view(2, 8, 32).permute(1, 0, 2).reshape(16, 32))


@triton.jit
def interleave_and_split(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    both = tl.interleave(tl.load(x + i), tl.load(x + N + i))
    first, second = tl.split(tl.reshape(both, (N, 2)))
    tl.store(out + tl.arange(0, 2 * N), both)
    tl.store(out + 2 * N + i, first)
    tl.store(out + 3 * N + i, second)


def test_interleave_and_split() -> None:
    x, out = randn(32), empty(64)
    interleave_and_split[(1,)](x.npu(), out, N=16)
    woven = torch.stack([x[:16], x[16:]], 1).view(-1)
    assert torch.equal(out.cpu(), torch.cat([woven, x]))


@triton.jit
def outer_product(x, y, out, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    product = tl.load(x + rows)[:, None] * tl.load(y + columns)[None, :]
    tl.store(out + rows[:, None] * N + columns[None, :], product + rows[:, None])


def test_broadcasts() -> None:
    x, y, out = randn(16), randn(32), empty(16, 32)
    outer_product[(1,)](x.npu(), y.npu(), out, M=16, N=32)
    torch.testing.assert_close(out.cpu(), x[:, None] * y[None, :] + torch.arange(16)[:, None])


@triton.jit
def scans(x, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + at)
    tl.store(out + at, tl.cumsum(v, 1))
    tl.store(out + M * N + at, tl.cumsum(v, 0))
    tl.store(out + 2 * M * N + at, tl.cumprod(v, 0, reverse=True))
    tl.store(out + 3 * M * N + at, tl.flip(v, 1))
    tl.store(out + 4 * M * N + at, tl.sort(v, 1))
    tl.store(out + 5 * M * N + at, tl.sort(v, 1, descending=True))


def test_scans_flips_and_sorts() -> None:
    x, out = randn(8, 32), empty(6, 8, 32)
    scans[(1,)](x.npu(), out, M=8, N=32)
    products = x.flip(0).cumprod(0).flip(0)
    ups, downs = x.sort(1).values, x.sort(1, descending=True).values
    want = torch.stack([x.cumsum(1), x.cumsum(0), products, x.flip(1), ups, downs])
    torch.testing.assert_close(out.cpu(), want, rtol=1e-4, atol=1e-4)


@triton.jit
def histogram(x, out, N: tl.constexpr, BINS: tl.constexpr):
    tl.store(out + tl.arange(0, BINS), tl.histogram(tl.load(x + tl.arange(0, N)), BINS))


def test_histogram() -> None:
    x = torch.randint(0, 16, (64,)).int()
    out = empty(16, dtype=torch.int32)
    histogram[(1,)](x.npu(), out, N=64, BINS=16)
    assert torch.equal(out.cpu().long(), torch.bincount(x, minlength=16))


@triton.jit
def print_values(x, n, N: tl.constexpr):
    tl.device_print("value", tl.load(x + tl.arange(0, N)))
    tl.device_print("count", n)


def test_device_print_writes_a_line_for_each_element(capfd: pytest.CaptureFixture[str]) -> None:
    print_values[(2,)](torch.tensor([0.5, -1.25]).npu(), 7, N=2)
    torch.npu.synchronize()
    lines = sorted(line for line in capfd.readouterr().err.splitlines() if line.startswith("pid"))
    assert lines == [
        "pid (0, 0, 0) count: 7",
        "pid (0, 0, 0) idx (0) value: 0.500000",
        "pid (0, 0, 0) idx (1) value: -1.250000",
        "pid (1, 0, 0) count: 7",
        "pid (1, 0, 0) idx (0) value: 0.500000",
        "pid (1, 0, 0) idx (1) value: -1.250000",
    ]
