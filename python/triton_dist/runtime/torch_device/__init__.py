"""The torch device `npu` of simulated NPUs.

    torch_device.ensure()
    x = torch.ones(4, device="npu:1")       # x.data_ptr() is an address of the host's memory

`ensure` is called by activation, so that user code needs none of this. Importing the package is cheap and does not
import torch: it happens while torch itself is being imported.
"""

from __future__ import annotations

from triton_dist.runtime.torch_device.device import ensure
from triton_dist.runtime.torch_device.errors import TorchDeviceError
from triton_dist.runtime.torch_device.foreign_memory import tensor_from_address
from triton_dist.runtime.torch_device.synchronization import on_synchronize

__all__ = ["TorchDeviceError", "ensure", "on_synchronize", "tensor_from_address"]
