"""Triton backend for simulated NPUs: triton-ascend's front half, then native code in place of an NPU binary.

The class takes the place of triton-ascend's own in Triton's table of backends (see activate.py), so that the target
that kernels and host code see is the same as on hardware: `GPUTarget("npu", <SoC>, 0)`.
"""

from __future__ import annotations

import re
import subprocess
from typing import Any

from triton.backends.ascend import compiler as stock
from triton.backends.compiler import GPUTarget

from triton_dist import env
from triton_dist.compiler import adapter, check_pointers, stage_cache, stage_settings, toolchain
from triton_dist.compiler.errors import KernelCompileError
from triton_dist.compiler.options import OPTIONS

_KERNEL_NAME = re.compile(r"tt\.func public @(\w+)")
# With this text triton-ascend's lowering knows, and drops, the assertions of `sanitize_overflow`.
_OVERFLOW_TEXT = "overflow detected for operation"
_KEPT_OVERFLOW_TEXT = "overflow in operation"
_EXTERN_LIBRARIES = re.compile(r"tdist\.extern_libs\s*=\s*\[([^\]]*)\]")


class SimulatedNPUBackend(stock.AscendBackend):  # type: ignore[misc]
    """Compiles a kernel to a shared object for this host. Options are triton-ascend's (`NPUOptions`)."""

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return bool(target.backend == "npu")

    def __init__(self, target: GPUTarget) -> None:
        super().__init__(target)
        self.binary_ext = "so"

    def get_codegen_implementation(self) -> dict[str, Any]:
        # The device language checks a kernel against the SoC that it is compiled for, driver or no driver.
        return {**super().get_codegen_implementation(), "triton_dist_soc": self.target.arch}

    def parse_options(self, opts: dict[str, Any]) -> Any:
        """NPUOptions of those of `opts` that are compiler options; the others are arguments of the kernel.

        Raises:
            TypeError, ValueError: an option has a value that it does not take.
        """
        given = {name: value for name, value in opts.items() if name in OPTIONS}
        for name, value in given.items():
            OPTIONS[name].check(value)
        given.setdefault("enable_fp_fusion", stage_settings.fusion_by_default())
        return super().parse_options(given)

    def hash(self) -> str:
        """What the binary depends on besides the kernel and its options."""
        return f"{self._tools()}-{stage_settings.fingerprint()}"

    def _tools(self) -> str:
        return f"{self.target}-{toolchain.fingerprint()}"

    def add_stages(self, stages: dict[str, Any], options: Any) -> None:
        stage_settings.check_locations()
        super().add_stages(stages, options)
        if "ttadapter" not in stages:
            raise KernelCompileError(
                "compile_mode='simt_only' has no linalg stage and cannot be simulated: use compile_mode='simd'"
            )
        stock_ttir, stock_linalg = stages["ttir"], stages["ttadapter"]
        del stages["npubin"]

        def make_ttir(module: Any, metadata: dict[str, Any]) -> Any:
            module = stock_ttir(module, metadata)
            text = str(module)
            check_pointers.check(text, _KERNEL_NAME.search(text).group(1))  # type: ignore[union-attr]
            return module

        def make_linalg(module: Any, metadata: dict[str, Any]) -> str:
            ttir = str(module).replace(_OVERFLOW_TEXT, _KEPT_OVERFLOW_TEXT)

            def produce() -> bytes:
                try:
                    text: str = stock_linalg(ttir, metadata)
                except subprocess.CalledProcessError as error:
                    raise KernelCompileError(adapter.failure(error)) from error
                return text.encode()

            key = ["ttadapter", ttir, options.hash(), self._tools()]
            return stage_cache.produce_once("ttadapter", key, produce).decode()

        def make_llvm(linalg: str, metadata: dict[str, Any]) -> str:
            # Fills in name, mix mode and tensor kinds; what it returns has lost the mix mode and is not needed.
            stock._parse_linalg_metadata(linalg, metadata)
            flags = stage_settings.lowering(metadata["kernel_name"])

            def produce() -> bytes:
                return toolchain.lower_to_llvm(toolchain.to_generic(linalg, adapter.path()), flags).encode()

            key = ["llvm", linalg, *flags.result, self._tools()]
            return stage_cache.produce_once("llvm", key, produce, anew=_is_watched(flags)).decode()

        def make_library(llvm_dialect: str, metadata: dict[str, Any]) -> bytes:
            libraries = _extern_libraries(llvm_dialect)
            flags = stage_settings.code_generation(options.enable_fp_fusion)

            def produce() -> bytes:
                return toolchain.generate_library(llvm_dialect, flags, libraries)

            key = ["so", llvm_dialect, *flags.result, self._tools()]
            return stage_cache.produce_once("so", key, produce, anew=_is_watched(flags))

        stages["ttir"] = make_ttir
        stages["ttadapter"] = make_linalg
        stages["llvmdialect"] = make_llvm
        stages["so"] = make_library


def _is_watched(flags: stage_settings.Flags) -> bool:
    """Whether a stage runs for what it says, not only for what it makes."""
    return bool(flags.reports) or env.TRITON_REPRODUCER_PATH.is_set()


def _extern_libraries(llvm_dialect: str) -> list[str]:
    found = _EXTERN_LIBRARIES.search(llvm_dialect)
    return re.findall(r'"([^"]*)"', found.group(1)) if found else []
