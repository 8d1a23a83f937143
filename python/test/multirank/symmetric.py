"""Symmetric tensors for the workers of these tests, set up the way users do it."""

# Torch gets its `npu` when it is imported.
# mypy: disable-error-code=attr-defined

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import shmem as ash
import torch
import torch.distributed as dist

HEAP_BYTES = 16 * 1024 * 1024
# The same for every test, as in users' suites: tests run side by side all the same.
ENDPOINT = "tcp://127.0.0.1:8666"
SLOT_BYTES = 64


def slot(dtype: torch.dtype) -> int:
    """How many elements of a signal word's type a slot takes."""
    return SLOT_BYTES // dtype.itemsize


@contextmanager
def symmetric_tensors(
    rank: int, world_size: int, *shapes: tuple[int, torch.dtype]
) -> Iterator[tuple[torch.Tensor, ...]]:
    """Zeroed tensors of the symmetric heap, one for each (elements, type).

    All ranks enter together. They leave together too, unless one fails: then it leaves alone.
    """
    assert ash.set_conf_store_tls(False, "") == 0
    attributes = ash.InitAttr()
    attributes.my_rank, attributes.n_ranks = rank, world_size
    attributes.local_mem_size, attributes.ip_port = HEAP_BYTES, ENDPOINT
    attributes.option_attr.data_op_engine_type = ash.OpEngineType.MTE
    assert ash.aclshmem_init(attributes) == 0
    tensors = tuple(
        ash.aclshmem_create_tensor([elements], dtype=dtype, device_id=torch.npu.current_device()).zero_()
        for elements, dtype in shapes
    )
    torch.npu.synchronize()
    dist.barrier()
    yield tensors
    torch.npu.synchronize()
    dist.barrier()
    for tensor in tensors:
        ash.aclshmem_free_tensor(tensor)
    ash.aclshmem_finalize()
