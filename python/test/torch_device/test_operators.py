"""Operators on npu against the same operators on cpu."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F  # noqa: N812
from torch.utils._pytree import tree_leaves, tree_map

NPU = torch.device("npu:1")


def values(*size: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool or not (dtype.is_floating_point or dtype.is_complex):
        return torch.randint(0, 5, size, generator=generator).to(dtype)
    return torch.randn(size, generator=generator, dtype=dtype)


def to_npu(arguments: Any) -> Any:
    return tree_map(lambda a: a.to(NPU) if isinstance(a, torch.Tensor) else a, arguments)


def assert_same(there: Any, here: Any) -> None:
    """Same structure, values, sizes and strides, with every tensor of `there` on NPU."""
    for on_npu, on_cpu in zip(tree_leaves(there), tree_leaves(here), strict=True):
        if isinstance(on_cpu, torch.Tensor):
            assert on_npu.device == NPU
            assert on_npu.stride() == on_cpu.stride()
            torch.testing.assert_close(on_npu.cpu(), on_cpu, equal_nan=True)
        else:
            assert on_npu == on_cpu


# A name for each call, the call, and its arguments on cpu.
Case = tuple[str, Callable[..., Any], tuple[Any, ...]]
M, V, S = values(4, 5), values(5), values(5, 5)
I64 = torch.tensor([2, 0, 1])

CASES: list[Case] = [
    ("add", torch.add, (M, V)),
    ("add a number", lambda a: 2 + a * 3.5 - 1, (M,)),
    ("add with alpha", lambda a, b: torch.add(a, b, alpha=2), (M, M)),
    ("compare", lambda a: (a > 0) & (a <= 1) | (a == a), (M,)),
    ("where", lambda a: torch.where(a > 0, a, -1.0), (M,)),
    ("clamp", lambda a: a.clamp(-0.5, 0.5), (M,)),
    ("exp log sqrt", lambda a: a.abs().sqrt().exp().log(), (M,)),
    ("gelu silu relu", lambda a: (F.gelu(a), F.silu(a), F.relu(a)), (M,)),
    ("integer division", lambda a: (a // 2, a % 2, a << 1), (values(6, dtype=torch.int64),)),
    ("promotion", lambda a, b: a + b, (values(6, dtype=torch.int32), values(6, dtype=torch.float16))),
    ("sum", lambda a: (a.sum(), a.sum(0), a.sum(1, keepdim=True)), (M,)),
    ("mean var std", lambda a: (a.mean(), a.var(1), a.std(0)), (M,)),
    ("max min", lambda a: (a.max(), a.max(1), a.min(0), a.amax(1), a.argmax()), (M,)),
    ("any all", lambda a: ((a > 0).any(), (a > 0).all(1)), (M,)),
    ("norm", lambda a: (a.norm(), torch.linalg.vector_norm(a, dim=1)), (M,)),
    ("cumsum", lambda a: (a.cumsum(1), a.cumprod(0)), (M,)),
    ("sort topk", lambda a: (a.sort(1), a.topk(2, 1), a.argsort(0)), (M,)),
    ("unique", lambda a: torch.unique(a, return_inverse=True, return_counts=True), (values(9, dtype=torch.int64),)),
    ("nonzero", lambda a: (a.nonzero(), torch.count_nonzero(a)), (values(4, 4, dtype=torch.int64),)),
    ("softmax", lambda a: (a.softmax(1), a.log_softmax(0), F.logsigmoid(a)), (M,)),
    ("layer norm", lambda a: F.layer_norm(a, (5,)), (M,)),
    ("rms norm", lambda a: F.rms_norm(a, (5,)), (M,)),
    ("batch norm", lambda a: F.batch_norm(a, torch.zeros_like(a[0]), torch.ones_like(a[0]), training=True), (M,)),
    ("cat stack", lambda a, b: (torch.cat([a, b]), torch.stack([a, b], 1), torch.hstack([a, b])), (M, M)),
    ("split chunk", lambda a: (a.split(2), a.chunk(2, 1), torch.tensor_split(a, 3)), (M,)),
    ("repeat tile", lambda a: (a.repeat(2, 3), a.repeat_interleave(2, 0), a.tile(2)), (M,)),
    ("flip roll", lambda a: (a.flip(0), a.roll(1, 1), torch.rot90(a)), (M,)),
    ("triangles", lambda a: (a.tril(), a.triu(1), torch.diag(a)), (S,)),
    ("pad", lambda a: (F.pad(a, (1, 2)), F.pad(a[None], (1, 1), mode="reflect")), (M,)),
    ("gather", lambda a, i: a.gather(0, i.unsqueeze(1)), (M, I64)),
    ("scatter", lambda a, i: a.scatter(0, i.unsqueeze(1), 7.0), (M, I64)),
    ("scatter_add", lambda a, i: a.index_add(0, i, a[:3]), (M, I64)),
    ("index_select", lambda a, i: (a.index_select(0, i), a[i], a[:, i], a[i, i]), (M, I64)),
    ("index by mask", lambda a: a[a > 0], (M,)),
    ("masked_fill", lambda a: a.masked_fill(a > 0, 1.5), (M,)),
    ("embedding", lambda w, i: F.embedding(i, w), (M, I64)),
    ("one_hot", lambda i: F.one_hot(i, 4), (I64,)),
    ("bincount", lambda i: (torch.bincount(i), torch.histc(i.float(), 3)), (I64,)),
    ("matmul", lambda a, b: (a @ b, a @ b[0], b[0] @ b), (M, S)),
    ("addmm", lambda a, b, c: torch.addmm(a, b, c, beta=0.5, alpha=2), (M, M, S)),
    ("bmm", torch.bmm, (values(2, 3, 4), values(2, 4, 5))),
    ("baddbmm", torch.baddbmm, (values(2, 3, 5), values(2, 3, 4), values(2, 4, 5))),
    ("einsum", lambda a, b: torch.einsum("bij,bjk->bik", a, b), (values(2, 3, 4), values(2, 4, 5))),
    ("linear", F.linear, (M, S, V)),
    ("dot outer", lambda a: (a.dot(a), torch.outer(a, a)), (V,)),
    ("linalg", lambda a: (torch.linalg.inv(a), torch.linalg.det(a), torch.linalg.qr(a)), (S,)),
    ("fft", lambda a: (torch.fft.fft(a), torch.fft.rfft(a).abs()), (V,)),
    ("complex", lambda a: (a.real, a.conj() @ a.mH, torch.view_as_real(a)), (values(3, 3, dtype=torch.complex64),)),
    ("conv1d", F.conv1d, (values(2, 3, 8), values(4, 3, 3), values(4))),
    ("conv2d", lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1), (values(2, 4, 8, 8), values(4, 4, 3, 3), V[:4])),
    ("conv_transpose2d", F.conv_transpose2d, (values(1, 2, 4, 4), values(2, 3, 3, 3))),
    ("pools", lambda a: (F.max_pool2d(a, 2), F.avg_pool2d(a, 2), F.adaptive_avg_pool2d(a, 3)), (values(1, 2, 6, 6),)),
    ("interpolate", lambda a: F.interpolate(a, scale_factor=2, mode="bilinear"), (values(1, 2, 4, 4),)),
    ("cross entropy", F.cross_entropy, (values(3, 5), torch.tensor([1, 4, 0]))),
    ("losses", lambda a, b: (F.mse_loss(a, b), F.l1_loss(a, b), F.huber_loss(a, b)), (M, values(4, 5, seed=1))),
    ("attention", lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), (values(1, 2, 16, 8),)),
    ("foreach", lambda a, b: torch._foreach_add([a, b], [b, a], alpha=2), (M, M)),
    ("likes", lambda a: (torch.zeros_like(a), torch.full_like(a, 2), a.new_ones(3), a.new_full((2,), 4)), (M,)),
    ("casts", lambda a: (a.half(), a.bfloat16(), a.long(), a.bool(), a.to(torch.float8_e4m3fn).float()), (M,)),
    ("equal", lambda a: (torch.equal(a, a), torch.allclose(a, a + 1), a.isnan()), (M,)),
    ("scalars", lambda a: (a.sum().item(), float(a[0, 0]), a.tolist()), (M,)),
    ("in place", lambda a: a.clone().add_(1).mul_(2).clamp_(min=0).sqrt_().zero_().fill_(3), (M,)),
    ("set items", lambda a: [b := a.clone(), b.__setitem__((0, slice(1, 3)), 9.0), b.__setitem__(b > 1, 0.0)][0], (M,)),
    ("copy into strides", lambda a: torch.zeros_like(a).t().copy_(a.t()), (M,)),
    ("channels last", lambda a: a.contiguous(memory_format=torch.channels_last) + 1, (values(2, 3, 4, 4),)),
    ("func", lambda a: (torch.func.vmap(torch.sum)(a), torch.func.jacrev(torch.sin)(a[0])), (M,)),
]  # fmt: skip


@pytest.mark.parametrize(("call", "arguments"), [pytest.param(c, a, id=name) for name, c, a in CASES])
def test_an_operator_does_on_npu_what_it_does_on_cpu(call: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    assert_same(call(*to_npu(arguments)), call(*arguments))


@pytest.mark.parametrize(
    "make",
    [
        lambda device: torch.arange(1, 10, 2, device=device),
        lambda device: torch.linspace(0, 1, 5, device=device),
        lambda device: torch.eye(3, device=device, dtype=torch.float16),
        lambda device: torch.full((2, 2), 7, device=device),
        lambda device: torch.tensor([[1, 2], [3, 4]], device=device),
        lambda device: torch.tril_indices(3, 3, device=device),
        lambda device: torch.hann_window(8, device=device),
        lambda device: torch.ones(2, device=device).new_tensor([3.0]),
        lambda device: torch.empty_strided((2, 3), (1, 2), device=device).fill_(1),
        lambda device: torch.empty(2, 3, 4, 5, device=device, memory_format=torch.channels_last).fill_(1),
    ],
)
def test_factories(make: Callable[[Any], torch.Tensor]) -> None:
    assert_same(make(NPU), make("cpu"))


def test_out_variants_write_what_they_are_given_and_return_it() -> None:
    here, there = torch.empty(4, 5), torch.empty(4, 5, device=NPU)
    assert torch.mul(M.to(NPU), 2, out=there) is there
    torch.mul(M, 2, out=here)
    assert_same(there, here)
    largest, index = torch.empty(0, device=NPU), torch.empty(0, dtype=torch.int64, device=NPU)
    torch.max(M.to(NPU), 1, out=(largest, index))
    assert_same((largest, index), tuple(torch.max(M, 1)))
    strided = torch.zeros(5, 4, device=NPU).t()
    torch.add(M.to(NPU), 1, out=strided)
    assert torch.equal(strided.cpu(), M + 1)


def test_in_place_operators_return_the_very_tensor() -> None:
    tensor = M.to(NPU)
    assert tensor.add_(1) is tensor
    part = tensor[1:3]
    part.mul_(0)
    assert torch.equal(tensor.cpu()[1:3], torch.zeros(2, 5))
    torch._foreach_mul_([tensor], 2.0)
    torch.testing.assert_close(tensor.cpu()[0], (M[0] + 1) * 2)


def test_zero_dimensional_cpu_tensors_mix_with_any_npu() -> None:
    tensor = torch.ones(2, device=NPU)
    assert (tensor * torch.tensor(3.0)).tolist() == [3, 3]
    assert (torch.tensor(3.0) - tensor).device == NPU
    tensor[0] = torch.tensor(7.0)
    assert tensor.tolist() == [7, 1]


def test_indices_may_be_on_cpu() -> None:
    tensor = torch.arange(4.0, device=NPU)
    assert tensor[torch.tensor([2, 0])].tolist() == [2, 0]
    tensor[torch.tensor([1])] = 9
    assert tensor.tolist() == [0, 9, 2, 3]


@pytest.mark.parametrize(
    "call",
    [
        lambda a, b: a + b,
        lambda a, b: a @ b,
        lambda a, b: torch.cat([a, b]),
        lambda a, b: a.add_(b),
        lambda a, b: torch.where(a > 0, a, b),
        lambda a, b: torch.add(a, a, out=b),
        lambda a, b: F.linear(a, b),
        lambda a, b: torch.equal(a, b),
        lambda a, b: torch._foreach_add([a], [b]),
        lambda a, b: F.conv1d(a[None], b[None]),
    ],
)
@pytest.mark.parametrize(("first", "second"), [("npu:0", "cpu"), ("cpu", "npu:0"), ("npu:0", "npu:1")])
def test_mixed_devices_are_refused(call: Callable[..., Any], first: str, second: str) -> None:
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device") as error:
        call(torch.ones(2, 2, device=first), torch.ones(2, 2, device=second))
    assert "npu" in str(error.value)


def test_a_cpu_tensor_is_not_written_to_by_an_npu() -> None:
    with pytest.raises(RuntimeError, match="npu:1 and cpu"):
        torch.tensor(0.0).add_(torch.tensor(1.0, device=NPU))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32])
def test_dtypes_that_do_not_fit_are_refused(dtype: torch.dtype) -> None:
    with pytest.raises(RuntimeError, match="same dtype"):
        torch.mm(torch.ones(2, 2, device=NPU, dtype=dtype), torch.ones(2, 2, device=NPU, dtype=torch.float16))


# ------------------------------------------------------------------------------- products in 16 bits


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "product",
    [
        lambda a, b, c: a @ b,
        lambda a, b, c: torch.mm(a, b),
        lambda a, b, c: torch.addmm(c, a, b, beta=0.5, alpha=2),
        lambda a, b, c: torch.bmm(a[None], b[None]),
        lambda a, b, c: torch.baddbmm(c[None], a[None], b[None]),
        lambda a, b, c: a @ b[:, 0],
        lambda a, b, c: torch.dot(a[0], a[1]),
        lambda a, b, c: F.linear(a, b.t(), c[0]),
        lambda a, b, c: torch.einsum("ij,jk->ki", a, b),
        lambda a, b, c: c.clone().addmm_(a, b),
        lambda a, b, c: torch.mm(a, b, out=torch.empty(0, dtype=a.dtype, device=a.device)),
        lambda a, b, c: torch.mm(a, b, out=torch.zeros_like(c.t()).t()),
        lambda a, b, c: F.conv2d(a.view(2, 4, 16, 16), b.view(8, 4, 4, 8), c[0, :8]),
    ],
)
def test_products_are_computed_in_float32_and_rounded_once(product: Callable[..., Any], dtype: torch.dtype) -> None:
    a, b, c = values(32, 64, dtype=dtype), values(64, 16, dtype=dtype, seed=1), values(32, 16, dtype=dtype, seed=2)
    exact = product(a.float(), b.float(), c.float())
    got = product(a.to(NPU), b.to(NPU), c.to(NPU))
    assert got.dtype == dtype
    assert got.device == NPU
    # The order in which float32 adds is free, so that a value between two roundings may go either way.
    torch.testing.assert_close(got.cpu(), exact.to(dtype), rtol=torch.finfo(dtype).eps, atol=1e-5)


def test_a_large_float16_product_is_not_torchs_slow_one() -> None:
    """torch takes 2 s on the CPU for this; in float32 it is some 20 ms. The limit allows for a busy machine."""
    import time

    a = torch.ones(1024, 1024, dtype=torch.float16, device=NPU)
    start = time.process_time()
    product = a @ a
    assert time.process_time() - start < 1
    assert product[0, 0].item() == 1024


# ------------------------------------------------------------------------------------- random numbers


def test_a_seed_decides_what_follows() -> None:
    npu = torch.npu  # type: ignore[attr-defined]
    for seed in (npu.manual_seed_all, torch.manual_seed):
        drawn = []
        for _ in range(2):
            seed(5)
            drawn.append(
                [
                    torch.randn(4, device=NPU),
                    torch.rand(4, device=NPU),
                    F.dropout(torch.ones(64, device=NPU)),
                    torch.randperm(8, device=NPU),
                    torch.ones(8, device=NPU).multinomial(3),
                    torch.empty(4, device=NPU).normal_(),
                    torch.randint(9, (4,), device=NPU),
                ]
            )
        for first, second in zip(*drawn, strict=True):
            assert torch.equal(first, second)


def test_each_npu_has_a_generator_of_its_own() -> None:
    npu = torch.npu  # type: ignore[attr-defined]
    npu.manual_seed_all(5)
    first = torch.randn(4, device="npu:0")
    host_state = torch.get_rng_state()
    F.dropout(torch.ones(64, device="npu:0"))
    assert torch.equal(torch.get_rng_state(), host_state), "drawing on an NPU has moved the CPU's generator"
    assert torch.equal(torch.randn(4, device="npu:1").cpu(), first.cpu())
    state = npu.get_rng_state(0)
    again = torch.randn(4, device="npu:0")
    npu.set_rng_state(state, 0)
    assert torch.equal(torch.randn(4, device="npu:0"), again)
    npu.manual_seed(9)
    assert npu.initial_seed() == 9


def test_generators() -> None:
    generator = torch.Generator(device=NPU)
    assert generator.device == NPU
    generator.manual_seed(3)
    drawn = torch.randn(4, device=NPU, generator=generator)
    copied = generator.clone_state()
    following = torch.randn(4, device=NPU, generator=generator)
    assert torch.equal(torch.randn(4, device=NPU, generator=copied), following)
    generator.manual_seed(3)
    assert torch.equal(torch.randn(4, device=NPU, generator=generator), drawn)
    assert torch.equal(torch.randn(4, generator=torch.Generator().manual_seed(3)), drawn.cpu())
    for other in (torch.Generator(device="npu:0"), torch.Generator()):
        with pytest.raises(RuntimeError, match="Expected a generator of npu:1"):
            torch.randn(4, device=NPU, generator=other)
