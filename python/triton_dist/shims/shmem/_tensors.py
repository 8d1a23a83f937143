"""Tensors in symmetric memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from triton_dist.runtime import job

from ._arguments import integer

if TYPE_CHECKING:
    import torch

__all__ = [
    "aclshmem_create_tensor",
    "aclshmem_free_tensor",
]


def aclshmem_create_tensor(shape: Sequence[int], dtype: torch.dtype | None = None, device_id: int = 0) -> torch.Tensor:
    """A contiguous tensor on `npu:device_id` at the same place of the symmetric heap on all ranks; collective.

    Its content is not defined. `dtype` is float32 where none is given.

    Raises:
        TypeError: `dtype` is no dtype, or a dimension no integer.
        ValueError: a dimension is negative, or the tensor has no elements.
        RuntimeError: there is no room (says what was asked and is free), or the ranks make different calls.
    """
    import torch

    from triton_dist.runtime import torch_device

    name = "aclshmem_create_tensor"
    current = job.require(name)
    dtype = torch.float32 if dtype is None else dtype
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"{name}: dtype must be a torch.dtype, not {dtype!r}")
    sizes = [integer(size, "a dimension of shape", name) for size in shape]
    elements = math.prod(sizes)
    if min(sizes, default=1) < 0 or elements == 0:
        raise ValueError(f"{name}: shape is {sizes}: a tensor in symmetric memory must have elements")
    device = integer(device_id, "device_id", name)
    torch_device.ensure()
    address = current.alloc(elements * dtype.itemsize, name=name)
    return torch_device.tensor_from_address(address, sizes, dtype, device, current.reference())


def aclshmem_free_tensor(tensor: torch.Tensor) -> None:
    """Gives back the memory of a tensor of `aclshmem_create_tensor`; collective. It must not be used any more.

    Raises:
        TypeError: it is no tensor.
        ValueError: its memory is not of `aclshmem_create_tensor`, or has been given back.
    """
    import torch

    name = "aclshmem_free_tensor"
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name} takes a tensor of aclshmem_create_tensor, not {tensor!r}")
    job.require(name).free(tensor.data_ptr(), name)
