"""Registers the torch.distributed backend `hccl`."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist


def register() -> None:
    """Makes `hccl` the backend of torch.distributed for tensors on npu."""
    dist.Backend.register_backend("hccl", _create, extended_api=True, devices=["npu"])


def _create(options: Any, backend_options: Any) -> dist.ProcessGroup:
    # The module is only imported by programs that make a process group.
    from triton_dist.runtime.torch_device.process_group import SimulatedHcclGroup

    return SimulatedHcclGroup(options.store, options.group_rank, options.group_size, options.timeout)
