"""Barriers over all programs of all ranks."""

# Arguments of kernels have no Python types, and torch gets its `npu` when it is imported.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem

from .symmetric import symmetric_tensors

PHASES = 5


@triton.jit
def phases(data, out, world_size, VECTOR: tl.constexpr, PHASES: tl.constexpr):
    """In each phase every program writes to all ranks; after the barrier it reads what all programs have written."""
    rank = dl.rank()
    program = tl.program_id(0)
    programs = tl.num_programs(0)
    total = 0
    for phase in range(PHASES):
        for pe in range(world_size):
            tl.store(dl.symm_at(data, pe) + rank * programs + program, phase * 1000 + rank * programs + program)
        if VECTOR:
            shmem.barrier_all_vec()
        else:
            shmem.barrier_all()
        for i in range(world_size * programs):
            total += tl.load(data + i)
        # Nobody writes the next phase before all have read this one.
        if VECTOR:
            shmem.barrier_all_vec()
        else:
            shmem.barrier_all()
    tl.store(out + program, total)


def worker(rank: int, world_size: int, programs: int, vector: bool) -> None:
    cells = world_size * programs
    with symmetric_tensors(rank, world_size, (cells, torch.int32)) as (data,):
        for _ in range(2):
            out = torch.zeros(programs, dtype=torch.int32).npu()
            phases[(programs,)](data, out, world_size, vector, PHASES)
            want = sum(phase * 1000 * cells + sum(range(cells)) for phase in range(PHASES))
            assert out.tolist() == [want] * programs


@pytest.mark.dist
@pytest.mark.parametrize("world_size", [2, 4, 8])
@pytest.mark.parametrize(("programs", "vector"), [(1, False), (6, False), (6, True)])
def test_barriers(dist_test, world_size: int, programs: int, vector: bool) -> None:
    dist_test(worker, world_size=world_size, args=(programs, vector))
