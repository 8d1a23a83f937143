"""What the ranks of the self-test do, each with values that torch computes on the CPU to compare with."""

# Torch gets its `npu` when it is imported.
# mypy: disable-error-code=attr-defined

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
import triton

from triton_dist.commands.selftest.kernels import add_twice, put_to_the_next, signal_after_data

BLOCK = 256
_HEAP_BYTES = 1 << 24
# int64 words in the 64 bytes of a signal's slot.
_SLOT = 8


def launch(rank: int, world_size: int) -> None:
    """One kernel on one NPU, with a last block that is not full."""
    count = 4 * BLOCK - 24
    x, y = torch.arange(count, dtype=torch.float32), torch.linspace(-1, 1, count)
    out = torch.zeros(count, device="npu")
    add_twice[(triton.cdiv(count, BLOCK),)](x.npu(), y.npu(), out, count, BLOCK=BLOCK)
    torch.npu.synchronize()
    torch.testing.assert_close(out.cpu(), x + 2 * y)
    print(f"torch.npu calls the NPU {torch.npu.get_device_name(rank)}")


def meet(rank: int, world_size: int) -> None:
    """A collective of the process group, and tensors on the symmetric heap."""
    total = torch.full((BLOCK,), float(rank + 1)).npu()
    dist.all_reduce(total)
    torch.testing.assert_close(total.cpu(), torch.full((BLOCK,), world_size * (world_size + 1) / 2))
    with _symmetric_heap(rank, world_size) as ash:
        tensor = ash.aclshmem_create_tensor([BLOCK], dtype=torch.float32, device_id=rank)
        tensor.fill_(rank)
        torch.npu.synchronize()
        ash.aclshmem_barrier_all()
        torch.testing.assert_close(tensor.cpu(), torch.full((BLOCK,), float(rank)))
        ash.aclshmem_free_tensor(tensor)


def notify_and_wait(rank: int, world_size: int) -> None:
    """Data and a signal from each rank to the next."""
    with _symmetric_heap(rank, world_size) as ash:
        inbox = ash.aclshmem_create_tensor([BLOCK], dtype=torch.float32, device_id=rank).fill_(-1)
        signal = ash.aclshmem_create_tensor([2 * _SLOT], dtype=torch.int64, device_id=rank).zero_()
        out = torch.full((BLOCK,), -2.0).npu()
        torch.npu.synchronize()
        ash.aclshmem_barrier_all()
        signal_after_data[(1,)](inbox, signal, _data_of(rank).npu(), out, BLOCK=BLOCK)
        torch.npu.synchronize()
        sent = _data_of((rank - 1) % world_size)
        torch.testing.assert_close(out.cpu(), sent, msg=lambda text: f"the data behind the signal is wrong: {text}")
        torch.testing.assert_close(inbox.cpu(), sent)
        # One word has been set, and nothing beside it.
        assert signal.tolist() == [1] + [0] * (2 * _SLOT - 1), f"the signal's words are {signal.tolist()}"
        ash.aclshmem_barrier_all()
        ash.aclshmem_free_tensor(signal)
        ash.aclshmem_free_tensor(inbox)


def put(rank: int, world_size: int) -> None:
    """A put of each rank to the next."""
    with _symmetric_heap(rank, world_size) as ash:
        inbox = ash.aclshmem_create_tensor([BLOCK], dtype=torch.float32, device_id=rank).fill_(-1)
        torch.npu.synchronize()
        ash.aclshmem_barrier_all()
        put_to_the_next[(1,)](inbox, _data_of(rank).npu(), BYTES=BLOCK * 4)
        torch.npu.synchronize()
        ash.aclshmem_barrier_all()
        torch.testing.assert_close(inbox.cpu(), _data_of((rank - 1) % world_size))
        ash.aclshmem_free_tensor(inbox)


def _data_of(rank: int) -> torch.Tensor:
    """What a rank sends: other numbers than every other rank."""
    return torch.arange(BLOCK, dtype=torch.float32) + 1000 * (rank + 1)


@contextmanager
def _symmetric_heap(rank: int, world_size: int) -> Iterator[Any]:
    """aclshmem, initialised for the block."""
    import shmem as ash

    attributes = ash.InitAttr()
    attributes.my_rank, attributes.n_ranks, attributes.local_mem_size = rank, world_size, _HEAP_BYTES
    # The lease's own port stands for it, see triton_dist.activation.leased_endpoint.
    attributes.ip_port = "tcp://127.0.0.1:8666"
    status = ash.aclshmem_init(attributes)
    assert status == 0, f"aclshmem_init returned {status}"
    yield ash
    ash.aclshmem_finalize()
