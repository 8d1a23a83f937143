"""Kernels that tests compile for real SoCs: annotated, so that nobody has to say of what types their parameters are."""

# Arguments of kernels have no Python types, or Triton's.
# mypy: ignore-errors
# ruff: noqa: F722

import torch
import triton
import triton.language as tl
from triton.language import core

import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def doubled(x):
    return x + x


@triton.jit
def add(x: "*fp32", y: "*fp32", n: tl.int32, BLOCK: tl.constexpr = 1024):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, doubled(tl.load(x + i, mask=i < n)), mask=i < n)


@triton.jit
def matmul(a: "*fp16", b: "*fp16", c: "*fp32", M: tl.constexpr = 32, N: tl.constexpr = 32, K: tl.constexpr = 64):
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    tl.store(c + m * N + n, tl.dot(tl.load(a + m * K + k[None, :]), tl.load(b + k[:, None] * N + n)))


@triton.jit
def in_a_loop(x: "*fp32", y: "*fp32", n: tl.int32, TILE: tl.constexpr = 256):
    for begin in range(0, n, TILE):
        i = begin + tl.arange(0, TILE)
        tl.store(y + i, tl.load(x + i) + 1.0)


@triton.jit
def signals_after_data(inbox: "*fp32", signal: "*i64", x: "*fp32", BLOCK: tl.constexpr = 64):
    right = (dl.rank() + 1) % dl.num_ranks()
    i = tl.arange(0, BLOCK)
    tl.store(dl.symm_at(inbox, right) + i, tl.load(x + i))
    dl.notify(signal, right)
    token = dl.wait(signal, 1, scope="gpu", semantic="acquire")
    tl.store(x + i, tl.load(dl.consume_token(inbox, token) + i))


@triton.jit
def puts(inbox: "*fp32", x: "*fp32", BLOCK: tl.constexpr = 64):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) + 1.0)
    shmem.putmem(inbox, x, BLOCK * 4, (dl.rank() + 1) % dl.num_ranks())


@triton.jit
def chooses_a_pointer(x: "*fp32", y: "*fp32", n: tl.int32):
    chosen = x if n > 3 else y
    tl.store(chosen, 1.0)


@triton.jit
def loses_much(flag: "*i32", count: "*i32", signal: "*i64", n: tl.int32):
    while tl.load(flag, volatile=True) != 1:
        pass
    tl.device_assert(n > 0, "n must be positive")
    old = tl.atomic_add(count, 1)
    tl.store(count + 1, old)
    dl.notify(signal + n, 0)
    dl.wait(signal, 2, scope="gpu", semantic="acquire")


@triton.jit
def loses_nothing(flag: "*i32", count: "*i32", signal: "*i64", n: tl.int32):
    tl.atomic_add(count, 1)
    dl.notify(signal + n * 8, 0)
    token = dl.wait(signal + 16, 2, scope="gpu", semantic="acquire")
    tl.store(count + 1, tl.load(dl.consume_token(count, token)))


@core.extern
def elsewhere(x, _builder=None):
    return dl.extern_call("mine", "", [x], {(core.int32,): ("nobody_has_this", core.int32)}, False, _builder=_builder)


@triton.jit
def calls_elsewhere(x: "*i32"):
    tl.store(x, elsewhere(tl.load(x)))


@triton.jit
def needs_types(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i).to(tl.float32))


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128}, multibuffer=False)], key=[])
@triton.jit
def tuned(x: "*fp32", y: "*fp32", BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i) + 1.0)


def main():
    x = torch.empty(512, dtype=torch.float16)
    needs_types[(1,)](x, torch.empty(512), BLOCK=512)
    needs_types[(2,)](x, torch.empty(512), BLOCK=512)
    needs_types[(1,)](x, torch.empty(512), BLOCK=256, multibuffer=False)
    assert x[0] == x[1] == 7, "nothing was launched"
