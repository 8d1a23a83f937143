"""The ways in which user code names an NPU."""

from __future__ import annotations

from typing import TypeAlias

import torch

Device: TypeAlias = "int | str | torch.device | None"


def index_of(device: Device) -> int:
    """Index of the NPU that `device` names: a number, "npu:1", torch.device("npu", 1); None and "npu" are the current.

    Raises:
        ValueError: it is the name of something else than an NPU.
        RuntimeError: this process has no such NPU.
    """
    if isinstance(device, int):
        index: int | None = device
    elif device is None:
        index = None
    else:
        named = torch.device(device)
        if named.type != "npu":
            raise ValueError(f"expected an NPU such as 'npu:0', got device {str(device)!r}")
        index = named.index
    if index is None or index == -1:
        return int(torch._C._accelerator_getDeviceIndex())
    count = int(torch._C._accelerator_hooks_device_count())
    if not 0 <= index < count:
        raise RuntimeError(
            f"there is no npu:{index}: this process has {count} simulated NPU(s), numbered from 0 "
            "(environment variable TRITON_DIST_SIM_NPUS)"
        )
    return index
