"""The kernels of the self-test: compiled for the SoC by one of its steps, and launched by others."""

# Arguments of kernels have Triton's types, which are no Python.
# mypy: ignore-errors
# ruff: noqa: F722

import triton
import triton.language as tl

import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def add_twice(x: "*fp32", y: "*fp32", out: "*fp32", count: tl.int32, BLOCK: tl.constexpr = 256):
    """out = x + 2 y, a block a program."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < count) + 2.0 * tl.load(y + i, mask=i < count), mask=i < count)


@triton.jit
def signal_after_data(inbox: "*fp32", signal: "*i64", data: "*fp32", out: "*fp32", BLOCK: tl.constexpr = 256):
    """Each rank stores its data into the inbox of the next, signals it, and waits for its own."""
    right = (dl.rank() + 1) % dl.num_ranks()
    i = tl.arange(0, BLOCK)
    tl.store(dl.symm_at(inbox, right) + i, tl.load(data + i))
    dl.notify(signal, right, signal=1, sig_op="set", comm_scope="intra_node")
    token = dl.wait(signal, 1, scope="gpu", semantic="acquire", waitValue=1)
    tl.store(out + i, tl.load(dl.consume_token(inbox, token) + i))


@triton.jit
def put_to_the_next(inbox: "*fp32", data: "*fp32", BYTES: tl.constexpr = 1024):
    """Each rank puts its data into the inbox of the next."""
    shmem.putmem(inbox, data, BYTES, (dl.rank() + 1) % dl.num_ranks())
    shmem.quiet()
