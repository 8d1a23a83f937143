"""Gradients, modules and optimizers on every NPU."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn


@pytest.mark.parametrize("index", [0, 1, 7])
def test_backward_on_every_index(index: int) -> None:
    device = torch.device("npu", index)
    here = torch.linspace(-1, 1, 12).view(3, 4).requires_grad_()
    there = here.detach().to(device).requires_grad_()
    for x in (here, there):
        ((x @ x.t()).relu().sum() + x.exp().mean()).backward()
    assert there.grad is not None
    assert there.grad.device == device
    assert here.grad is not None
    torch.testing.assert_close(there.grad.cpu(), here.grad)


def test_a_graph_over_several_devices() -> None:
    x = torch.ones(2, device="npu:2", requires_grad=True)
    y = (x * 2).to("npu:1")
    z = (y * 3).cpu()
    (z.to("npu:2") + x).sum().backward()
    assert x.grad is not None
    assert x.grad.device == torch.device("npu:2")
    assert x.grad.tolist() == [7, 7]


def test_backward_does_not_change_the_current_npu() -> None:
    torch.npu.set_device(0)  # type: ignore[attr-defined]
    torch.ones(2, device="npu:3", requires_grad=True).sum().backward()
    assert torch.npu.current_device() == 0  # type: ignore[attr-defined]


def test_hooks_double_backward_and_views() -> None:
    x = torch.arange(1.0, 4.0, device="npu:1", requires_grad=True)
    x.register_hook(lambda gradient: gradient * 2)
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    assert first.tolist() == [6, 24, 54]
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.tolist() == [24, 48, 72]
    base = torch.zeros(4, device="npu:1", requires_grad=True)
    changed = base * 1
    changed[1:3] = x[:2]
    changed.sum().backward()
    assert base.grad is not None
    assert base.grad.tolist() == [1, 0, 0, 1]


def test_writing_what_backward_needs_is_found_out() -> None:
    x = torch.ones(2, device="npu", requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_float16_products_have_gradients() -> None:
    a = torch.full((3, 4), 0.5, dtype=torch.float16, device="npu:1", requires_grad=True)
    b = torch.full((4, 2), 2.0, dtype=torch.float16, device="npu:1", requires_grad=True)
    (a @ b).sum().backward()
    assert a.grad is not None
    assert b.grad is not None
    assert a.grad.dtype == torch.float16
    assert a.grad.tolist() == [[4.0] * 4] * 3
    assert b.grad.tolist() == [[1.5] * 2] * 4


def make_network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(4 * 4 * 4, 8),
        nn.LayerNorm(8),
        nn.GELU(),
        nn.Linear(8, 3),
    )


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: torch.optim.AdamW(p, lr=0.01),
        lambda p: torch.optim.AdamW(p, lr=0.01, foreach=True),
        lambda p: torch.optim.Adam(p, lr=0.01, fused=True),
    ],
)
def test_training_goes_as_on_the_cpu(optimizer) -> None:  # type: ignore[no-untyped-def]
    here = make_network()
    there = copy.deepcopy(here).to("npu:1")
    x, target = torch.linspace(-1, 1, 5 * 36).view(5, 1, 6, 6), torch.tensor([0, 1, 2, 0, 1])
    for model, device in ((here, "cpu"), (there, "npu:1")):
        steps = optimizer(model.parameters())
        for _ in range(3):
            steps.zero_grad()
            nn.functional.cross_entropy(model(x.to(device)), target.to(device)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            steps.step()
    for of_here, of_there in zip(here.state_dict().values(), there.state_dict().values(), strict=True):
        assert of_there.device == torch.device("npu:1")
        torch.testing.assert_close(of_there.cpu(), of_here, rtol=1e-3, atol=1e-4)


def test_checkpointed_layers_draw_the_same_numbers_again() -> None:
    from torch.utils.checkpoint import checkpoint

    layer = nn.Dropout(0.5)
    x = torch.ones(256, device="npu:1", requires_grad=True)
    out = checkpoint(lambda t: layer(t * 2), x, use_reentrant=False)
    out.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad != 0, out != 0)


def test_a_transformer_layer_in_both_modes() -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, batch_first=True, dropout=0.0)
    x = torch.linspace(-1, 1, 2 * 5 * 16).view(2, 5, 16)
    there = copy.deepcopy(layer).npu()  # type: ignore[operator]
    torch.testing.assert_close(there(x.npu()).cpu(), layer(x), rtol=1e-4, atol=1e-5)  # type: ignore[attr-defined]
    layer.eval()
    there.eval()
    with torch.inference_mode():
        torch.testing.assert_close(there(x.npu()).cpu(), layer(x), rtol=1e-4, atol=1e-5)  # type: ignore[attr-defined]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast(dtype: torch.dtype) -> None:
    weight = torch.full((4, 4), 0.5, device="npu:1", requires_grad=True)
    x = torch.ones(2, 4, device="npu:1")
    with torch.autocast("npu", dtype=dtype):
        product = x @ weight
        assert product.dtype == dtype
        assert product.exp().dtype == torch.float32
        assert (product + 1).dtype == dtype
        assert torch.cat([product, x]).dtype == torch.float32
        with torch.autocast("npu", enabled=False):
            assert (x @ weight).dtype == torch.float32
        loss = nn.functional.mse_loss(product, torch.zeros_like(product))
        assert loss.dtype == torch.float32
    loss.backward()
    assert weight.grad is not None
    assert weight.grad.dtype == torch.float32
    assert weight.grad.tolist() == [[1.0] * 4] * 4
    assert (x @ weight).dtype == torch.float32


def test_a_grad_scaler_steps() -> None:
    layer = nn.Linear(2, 1).to("npu:1")
    before = layer.weight.detach().clone()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("npu", init_scale=128.0)
    with torch.autocast("npu", dtype=torch.float16):
        loss = layer(torch.ones(3, 2, device="npu:1")).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    torch.testing.assert_close(layer.weight.detach(), before - 0.3)
