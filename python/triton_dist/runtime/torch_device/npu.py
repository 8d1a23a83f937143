"""The module `torch.npu` of simulated NPUs: the part of torch_npu's interface that suites use.

A device argument is an index, a name such as "npu:1", a torch.device or None for the current NPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NoReturn

import torch

from triton_dist import env
from triton_dist.runtime.torch_device import synchronization
from triton_dist.runtime.torch_device.indices import Device, index_of
from triton_dist.runtime.torch_device.streams import Event as Event
from triton_dist.runtime.torch_device.streams import Stream, as_stream

OutOfMemoryError = torch.OutOfMemoryError

config = SimpleNamespace(allow_internal_format=False)
"""Settings that suites write to; a simulated NPU has no internal formats that they would choose among."""


# ------------------------------------------------------------------------------------------ devices


def is_available() -> bool:
    """Whether this process has an NPU."""
    return device_count() > 0


def device_count() -> int:
    """How many NPUs this process has: TRITON_DIST_SIM_NPUS when the device was made."""
    return int(torch._C._accelerator_hooks_device_count())


def current_device() -> int:
    """Index of the NPU that `device="npu"` means in this thread."""
    return int(torch._C._accelerator_getDeviceIndex())


def set_device(device: Device) -> None:
    """Makes `device` the current NPU of this thread."""
    torch._C._accelerator_setDeviceIndex(index_of(device))


class device:  # noqa: N801 - torch's name
    """Context in which another NPU is the current one; None or a negative index changes nothing."""

    def __init__(self, device: Device) -> None:
        self.idx = -1 if device is None or (isinstance(device, int) and device < 0) else index_of(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = current_device()
        if self.idx >= 0:
            set_device(self.idx)

    def __exit__(self, *exception: object) -> None:
        set_device(self.prev_idx)


class device_of(device):  # noqa: N801 - torch's name
    """Context in which the NPU of a tensor is the current one; a tensor elsewhere changes nothing."""

    def __init__(self, obj: torch.Tensor) -> None:
        super().__init__(obj.device if obj.device.type == "npu" else None)


@dataclass(frozen=True)
class DeviceProperties:
    """What an NPU is: name of its SoC and bytes of memory."""

    name: str
    total_memory: int


def get_device_name(device: Device = None) -> str:
    """Name of the simulated SoC."""
    index_of(device)
    return env.TRITON_DIST_SIM_SOC.get()


def get_device_properties(device: Device = None) -> DeviceProperties:
    """Properties of an NPU; its memory is the host's, which all simulated NPUs share."""
    return DeviceProperties(name=get_device_name(device), total_memory=mem_get_info(device)[1])


def get_device_capability(device: Device = None) -> None:
    """None, as NPUs have no compute capability."""
    index_of(device)


def can_device_access_peer(device: Device, peer_device: Device) -> bool:
    """Whether one NPU can read another's memory: always, unless they are the same."""
    return index_of(device) != index_of(peer_device)


def is_bf16_supported() -> bool:
    """Whether tensors may be bfloat16."""
    return True


def init() -> None:
    """Does nothing: NPUs are ready when `torch.npu` is there."""


def is_initialized() -> bool:
    """True: NPUs are ready when `torch.npu` is there."""
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Element types that torch.autocast("npu") takes."""
    return [torch.float16, torch.bfloat16]


# Checkpointing saves the state of generators only where this says that there are any.
_initialized = True


def set_compile_mode(jit_compile: bool = False) -> None:
    """Does nothing: operators are not compiled on simulated NPUs."""


# --------------------------------------------------------------------------------- streams and time


def synchronize(device: Device = None) -> None:
    """Waits until all work of an NPU has ended; the errors of kernels come out here."""
    index = index_of(device)
    synchronization.run(index)
    torch._C._accelerator_synchronizeDevice(index)


def current_stream(device: Device = None) -> Stream:
    """The stream that work of this thread goes to on an NPU."""
    return as_stream(torch._C._accelerator_getStream(index_of(device)))


def default_stream(device: Device = None) -> Stream:
    """The stream that is current where no other was chosen."""
    reference = torch._C._accelerator_getStream(index_of(device))
    return Stream(stream_id=0, device_index=reference.device_index, device_type=reference.device_type)


def set_stream(stream: torch.Stream) -> None:
    """Makes `stream` the current one of this thread, and its NPU the current NPU."""
    torch._C._accelerator_setStream(stream)


@contextmanager
def stream(stream: torch.Stream | None) -> Iterator[None]:
    """Context in which work goes to `stream`; None changes nothing."""
    if stream is None:
        yield
        return
    device_before = current_device()
    stream_before = current_stream(stream.device_index)
    set_stream(stream)
    try:
        yield
    finally:
        set_stream(stream_before)
        set_device(device_before)


# ----------------------------------------------------------------------------------- random numbers


def _generator(device: Device) -> torch.Generator:
    generator: torch.Generator = torch.ops.triton_dist_npu.default_generator(index_of(device))
    return generator


def manual_seed(seed: int) -> None:
    """Seeds the current NPU's generator."""
    _generator(None).manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seeds the generator of every NPU."""
    for index in range(device_count()):
        _generator(index).manual_seed(seed)


def seed() -> None:
    """Seeds the current NPU's generator with a random number."""
    _generator(None).seed()


def seed_all() -> None:
    """Seeds the generator of every NPU with one random number."""
    manual_seed_all(torch.Generator().seed())


def initial_seed() -> int:
    """The seed of the current NPU's generator."""
    return _generator(None).initial_seed()


def get_rng_state(device: Device = "npu") -> torch.Tensor:
    """State of an NPU's generator, a uint8 tensor on cpu."""
    return _generator(device).get_state()


def set_rng_state(new_state: torch.Tensor, device: Device = "npu") -> None:
    """Sets the state of an NPU's generator to what get_rng_state has given."""
    _generator(device).set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    """State of the generator of every NPU."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states: list[torch.Tensor]) -> None:
    """Sets the states of the generators of the first NPUs."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def _is_in_bad_fork() -> bool:
    # A child of fork can use NPUs: there is no driver whose state it would lack.
    return False


# ------------------------------------------------------------------------------------------- memory


def empty_cache() -> None:
    """Does nothing: freed memory goes back at once."""


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Free and total bytes: those of the host, which all simulated NPUs share."""
    free, total = torch.accelerator.get_memory_info(index_of(device))
    return free, total


def memory_allocated(device: Device = None) -> int:
    """Bytes that tensors of an NPU take now."""
    return torch.accelerator.memory_allocated(index_of(device))


def max_memory_allocated(device: Device = None) -> int:
    """The most bytes that tensors of an NPU have taken at once."""
    return torch.accelerator.max_memory_allocated(index_of(device))


def memory_reserved(device: Device = None) -> int:
    """The same as memory_allocated: nothing is kept in reserve."""
    return torch.accelerator.memory_reserved(index_of(device))


def max_memory_reserved(device: Device = None) -> int:
    """The same as max_memory_allocated: nothing is kept in reserve."""
    return torch.accelerator.max_memory_reserved(index_of(device))


def memory_stats(device: Device = None) -> dict[str, Any]:
    """torch's table of memory counters."""
    return torch.accelerator.memory_stats(index_of(device))


def reset_peak_memory_stats(device: Device = None) -> None:
    """Has max_memory_allocated start again from what is allocated now."""
    torch.accelerator.reset_peak_memory_stats(index_of(device))


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"torch.npu.{name} is not there on simulated NPUs (torch_npu on hardware may have it)")
