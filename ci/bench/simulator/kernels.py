"""The kernels that are measured."""

# Arguments of kernels have no Python types.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

from __future__ import annotations

import triton
import triton.language as tl

import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem

SLOT = 8
"""Elements of int64 from one signal word to the next: 64 bytes."""


@triton.jit
def empty():
    pass


@triton.jit
def pingpong(words, base, ROUNDS: tl.constexpr):
    """Rank 0 notifies and waits, rank 1 waits and notifies; `base` is how many rounds have been before."""
    rank = dl.rank()
    for step in range(1, ROUNDS + 1):
        if rank == 0:
            dl.notify(words, 1, signal=base + step)
            dl.wait(words, 1, "gpu", "acquire", waitValue=base + step)
        else:
            dl.wait(words, 1, "gpu", "acquire", waitValue=base + step)
            dl.notify(words, 0, signal=base + step)


@triton.jit
def ring_of_programs(words, base, ROUNDS: tl.constexpr, SLOT: tl.constexpr):
    """Each program waits for its word and hands on to the next; program 0 begins a round."""
    program = tl.program_id(0)
    following = (program + 1) % tl.num_programs(0)
    rank = dl.rank()
    for step in range(1, ROUNDS + 1):
        if program == 0:
            dl.notify(words + following * SLOT, rank, signal=base + step)
            dl.wait(words, 1, "gpu", "acquire", waitValue=base + step)
        else:
            dl.wait(words + program * SLOT, 1, "gpu", "acquire", waitValue=base + step)
            dl.notify(words + following * SLOT, rank, signal=base + step)


@triton.jit
def ring_of_ranks(words, base, ROUNDS: tl.constexpr):
    """A number goes round all ranks, ROUNDS times."""
    rank = dl.rank()
    following = (rank + 1) % dl.num_ranks()
    for step in range(1, ROUNDS + 1):
        if rank == 0:
            dl.notify(words, following, signal=base + step)
            dl.wait(words, 1, "gpu", "acquire", waitValue=base + step)
        else:
            dl.wait(words, 1, "gpu", "acquire", waitValue=base + step)
            dl.notify(words, following, signal=base + step)


@triton.jit
def barriers(ROUNDS: tl.constexpr):
    for _ in range(ROUNDS):
        shmem.barrier_all()
