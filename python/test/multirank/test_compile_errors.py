"""A kernel that is not allowed fails its launch with its line, on every rank, and hangs nobody."""

# Arguments of kernels have no Python types, and torch gets its `npu` when it is imported.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

import triton_dist.language as dl

from .symmetric import symmetric_tensors


@triton.jit
def adds_to_64_bits(words):
    dl.notify(words, 0, sig_op="add")


@triton.jit
def chooses_a_pointer(words, others, flag):
    chosen = words
    if flag > 0:
        chosen = others
        tl.store(words, 0)
    tl.store(chosen, 1)


def worker(rank: int, world_size: int) -> None:
    with symmetric_tensors(rank, world_size, (8, torch.int64), (8, torch.int64)) as (words, others):
        with pytest.raises(triton.CompilationError, match=r"sig_op is 'add'[^\n]*Ascend910B3"):
            adds_to_64_bits[(1,)](words)
        with pytest.raises(triton.TritonError, match=r"test_compile_errors\.py:\d+:\d+: .*choose the offset"):
            chooses_a_pointer[(1,)](words, others, rank + 5)


@pytest.mark.dist
def test_forbidden_kernels_fail_at_their_launch(dist_test) -> None:
    dist_test(worker, world_size=2)
