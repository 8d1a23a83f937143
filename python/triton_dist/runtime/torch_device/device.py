"""Makes the device `npu` exist in this process."""

from __future__ import annotations

import functools

from triton_dist import env
from triton_dist.runtime.torch_device.errors import TorchDeviceError

_UNNAMED = "privateuseone"
_MOST_DEVICES = 127  # torch counts devices in 8 bits


@functools.cache
def ensure() -> None:
    """Makes torch know the device `npu`: tensors, `torch.npu`, `Tensor.npu()` and the backend `hccl`.

    Builds the C++ part first where the cache lacks it. Calling it again changes nothing.

    Raises:
        TorchDeviceError: the C++ part cannot be had, or another package has taken torch's place for a device of
            its own.
        EnvironmentVariableError: TRITON_DIST_SIM_NPUS is not a number of NPUs.
    """
    import torch

    from triton_dist.runtime.torch_device.library import library

    taken = torch._C._get_privateuse1_backend_name()
    if taken != _UNNAMED:
        raise TorchDeviceError(
            f"torch already has a device {taken!r} from another package, and has room for one only: do not load that "
            "package, or set TRITON_DIST_BACKEND=ascend"
        )
    library()
    count_devices()

    from triton_dist.runtime.torch_device import npu

    torch.utils.rename_privateuse1_backend("npu")
    torch._register_device_module("npu", npu)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    if torch.distributed.is_available():
        from triton_dist.runtime.torch_device import hccl

        hccl.register()


def count_devices() -> None:
    """Gives the device as many indices as TRITON_DIST_SIM_NPUS says now.

    For a process that was forked when the device was there already, and has fewer NPUs than its parent.

    Raises:
        TorchDeviceError: torch cannot have so many.
        EnvironmentVariableError: the variable is not a number of NPUs.
    """
    from triton_dist.runtime.torch_device.library import library

    count = env.TRITON_DIST_SIM_NPUS.get()
    if count > _MOST_DEVICES:
        raise TorchDeviceError(f"TRITON_DIST_SIM_NPUS={count} is too many: torch has at most {_MOST_DEVICES} devices")
    library().tdist_npu_set_count(count)
