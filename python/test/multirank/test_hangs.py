"""The suite can fail: a signal that never comes is a reported hang, a wrong value a failed rank."""

# Arguments of kernels have no Python types, and torch gets its `npu` when it is imported.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

import inspect

import pytest
import torch
import triton
import triton.language as tl

import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem
from triton_dist.testing.report import RanksFailed

from .symmetric import slot, symmetric_tensors


@triton.jit
def send(data, signals, SLOT: tl.constexpr, FORGET: tl.constexpr):
    tl.store(dl.symm_at(data, 0), 42)
    if not FORGET:
        dl.notify(signals + SLOT, 0)


@triton.jit
def receive(data, signals, out, SLOT: tl.constexpr):
    token = dl.wait(signals + SLOT, 1, "sys", "acquire")  # HANGS HERE
    tl.store(out, tl.load(dl.consume_token(data, token)))


def pair(rank: int, world_size: int, forget: bool, want: int) -> None:
    with symmetric_tensors(rank, world_size, (1, torch.int32), (2 * slot(torch.int64), torch.int64)) as (
        data,
        signals,
    ):
        if rank == 0:
            out = torch.zeros(1, dtype=torch.int32).npu()
            receive[(1,)](data, signals, out, slot(torch.int64))
            assert out.item() == want
        else:
            send[(1,)](data, signals, slot(torch.int64), forget)


@triton.jit
def barrier_for_some(out):
    if dl.rank() == 0:
        shmem.barrier_all()  # HANGS HERE
    tl.store(out, 1)


def lonely_barrier(rank: int, world_size: int) -> None:
    with symmetric_tensors(rank, world_size):
        out = torch.zeros(1, dtype=torch.int32).npu()
        barrier_for_some[(1,)](out)
        assert out.item() == 1


def hanging_line(kernel: triton.JITFunction) -> int:
    lines, first = inspect.getsourcelines(kernel.fn)
    (offset,) = [i for i, line in enumerate(lines) if line.rstrip().endswith("# HANGS HERE")]
    return first + offset


@pytest.mark.dist
def test_the_pair_works(dist_test) -> None:
    dist_test(pair, world_size=2, args=(False, 42))


@pytest.mark.dist(timeout=8)
@pytest.mark.parametrize(
    ("kernel", "worker", "arguments", "primitive"),
    [(receive, pair, (True, 42), "wait"), (barrier_for_some, lonely_barrier, (), "barrier_all")],
    ids=["missing notify", "barrier that not all reach"],
)
def test_a_hang_is_reported_with_its_line(dist_test, kernel, worker, arguments, primitive: str) -> None:
    with pytest.raises(RanksFailed) as caught:
        dist_test(worker, world_size=2, args=arguments)
    message = str(caught.value)
    assert "rank 0" in message
    assert kernel.__name__ in message
    assert primitive in message
    assert f"test_hangs.py:{hanging_line(kernel)}" in message


@pytest.mark.dist
def test_a_wrong_value_fails_its_rank(dist_test) -> None:
    with pytest.raises(RanksFailed, match=r"rank 0 of 2: .*assert 42 == 43"):
        dist_test(pair, world_size=2, args=(False, 43))
