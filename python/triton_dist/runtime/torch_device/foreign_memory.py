"""Tensors on npu over memory that somebody else owns, such as a symmetric heap."""

from __future__ import annotations

import atexit
import ctypes
import functools
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_kept: dict[int, object] = {}
_tokens = itertools.count()


def tensor_from_address(
    address: int,
    shape: Sequence[int],
    dtype: torch.dtype,
    device_index: int,
    keep_alive: object | None = None,
) -> torch.Tensor:
    """A contiguous tensor on NPU `device_index` over the memory at `address`, without a copy.

    Args:
        address: host address of the first element, a multiple of the element's size.
        shape: sizes in elements.
        dtype: element type.
        device_index: the NPU that the tensor is on.
        keep_alive: an object that is referenced for as long as the tensor, a view of it or its storage lives.

    Returns:
        A tensor whose storage cannot grow: resizing beyond it raises RuntimeError.

    Raises:
        ValueError: the address is null or not aligned, or a size is negative.
    """
    import torch

    from triton_dist.runtime.torch_device.device import ensure

    ensure()
    if address <= 0 or address % dtype.itemsize:
        raise ValueError(f"address {address:#x} cannot hold {dtype}: expected a multiple of {dtype.itemsize}, not null")
    if any(size < 0 for size in shape):
        raise ValueError(f"shape {tuple(shape)} has a negative size")
    strides = [1] * len(shape)
    for i in reversed(range(len(shape) - 1)):
        strides[i] = strides[i + 1] * max(shape[i + 1], 1)
    _release_callback()
    token = next(_tokens)
    _kept[token] = keep_alive
    tensor: torch.Tensor = torch.ops.triton_dist_npu.from_address(
        address, list(shape), strides, dtype, device_index, token
    )
    return tensor


@functools.cache
def _release_callback() -> object:
    """Tells the C++ part whom to call when it no longer uses a memory, until the interpreter ends.

    The cache holds on to what is returned, and so keeps the callback alive.
    """
    from triton_dist.runtime.torch_device.library import library

    def release(token: int) -> None:
        _kept.pop(token, None)

    callback = ctypes.CFUNCTYPE(None, ctypes.c_int64)(release)
    loaded = library()
    loaded.tdist_npu_on_release(ctypes.cast(callback, ctypes.c_void_p))
    atexit.register(loaded.tdist_npu_on_release, None)
    return callback
