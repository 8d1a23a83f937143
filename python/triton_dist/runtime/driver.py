"""Triton driver of simulated NPUs: which device is current, and how a compiled kernel is loaded."""

from __future__ import annotations

import ctypes
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from triton_dist import env
from triton_dist.compiler import scratch, stage_cache
from triton_dist.runtime import native, soc
from triton_dist.runtime.launcher import SimulatedNPULauncher


class SimulatedNPUUtils:
    """What Triton asks of a driver's `utils`."""

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[Any, int, int, int]:
        """Load a kernel's shared object. Returns (library, address of its entry, registers, spills)."""
        native.library()
        path = stage_cache.keep("so", kernel)
        library = ctypes.CDLL(str(path)) if path is not None else _load_without_cache(kernel)
        entry = ctypes.cast(library.tdist_kernel_entry, ctypes.c_void_p).value
        assert entry is not None
        return library, entry, 0, 0

    def get_device_properties(self, device: int) -> dict[str, int]:
        """Core counts of the simulated SoC. Shared memory does not limit a simulated NPU."""
        simulated = soc.simulated()
        return {
            "max_shared_mem": 1,
            "num_aicore": simulated.aic,
            "num_vectorcore": simulated.aiv,
        }


def _load_without_cache(kernel: bytes) -> ctypes.CDLL:
    with scratch.directory() as directory:
        path = directory / "kernel.so"
        path.write_bytes(kernel)
        return ctypes.CDLL(str(path))


def target_soc() -> str:
    """Name of the SoC that kernels are compiled for: TRITON_ASCEND_ARCH when set, else TRITON_DIST_SIM_SOC."""
    return env.TRITON_ASCEND_ARCH.get() or env.TRITON_DIST_SIM_SOC.get()


class SimulatedNPUDriver(DriverBase):  # type: ignore[misc]
    """Stands where triton-ascend's driver stands; torch's device `npu` says which simulated NPU is current."""

    def __init__(self) -> None:
        super().__init__()
        self.utils = SimulatedNPUUtils()
        self.launcher_cls = SimulatedNPULauncher

    @classmethod
    def is_active(cls) -> bool:
        return True

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("npu", soc.lookup(target_soc()).name, 0)

    def get_current_device(self) -> int:
        return int(self.get_device_interface().current_device())

    def set_current_device(self, device: int) -> None:
        self.get_device_interface().set_device(device)

    def get_current_stream(self, device: int | None = None) -> int:
        from triton_dist.runtime.torch_device.library import library

        return int(library().tdist_npu_current_stream(-1 if device is None else device))

    def get_device_interface(self) -> Any:
        import torch

        from triton_dist.runtime import torch_device

        torch_device.ensure()
        return torch.get_device_module("npu")

    def get_benchmarker(self) -> Any:
        from triton.testing import do_bench

        return do_bench

    def get_empty_cache_for_benchmark(self) -> Any:
        import torch

        # Larger than a CPU's last-level cache; a simulated NPU has no L2 of its own to empty.
        return torch.empty(64 * 1024 * 1024 // 4, dtype=torch.int, device="npu")
