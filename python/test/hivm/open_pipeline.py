"""Takes kernels through the open part of the NPU's compiler: tdist-opt, then bishengir-compile up to CANN's `hivmc`."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_compiler import KernelCompiler

from triton_dist.compiler import adapter, toolchain
from triton_dist.runtime import native

_FINAL_PASS = "convert-hivm-to-std"
_CALLEE = re.compile(r"callee = @(?:_mlir_ciface_)?([\w]+)")


@dataclass(frozen=True)
class OpenPipeline:
    """The tools, and a folder for what goes between them."""

    bin: Path
    folder: Path

    def linalg(self, kernel: Any, signature: Mapping[str, str], soc: str, **constants: Any) -> str:
        """Linalg IR of the stock adapter, in generic form, with the lines of the kernel."""
        return toolchain.to_generic(KernelCompiler()(kernel, signature, soc, **constants).linalg, adapter.path())

    def lower(self, linalg: str, soc: str) -> str:
        """What bishengir-compile reads.

        Raises:
            AssertionError: tdist-opt failed; the message is what it says.
        """
        result = self._tdist_opt(linalg, f"--tdist-lower-to-hivm=soc={soc}", "--mlir-print-debuginfo")
        assert result.returncode == 0, result.stderr
        return result.stdout

    def compile(self, lowered: str, soc: str) -> str:
        """The IR after the last open pass, in generic form: once that is there, only CANN's own part is missing."""
        source = self.folder / "kernel.mlir"
        source.write_text(lowered)
        is_950 = soc.startswith("Ascend950")
        result = subprocess.run(
            [
                self.bin / ("bishengir-compile-a5" if is_950 else "bishengir-compile"),
                source,
                f"--target={soc}",
                "--enable-hfusion-compile=true",
                "--enable-triton-kernel-compile=true",
                *([] if is_950 else ["--enable-hivm-compile=true"]),
                f"--mlir-print-ir-after={_FINAL_PASS}",
                "--mlir-print-op-generic",
                "--mlir-print-debuginfo",
                *("-o", self.folder / "kernel.o"),
            ],
            cwd=self.folder,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert f"({_FINAL_PASS})" in result.stderr, result.stdout + result.stderr
        # The compiler for Ascend950 tries several times when it finds no hivmc.
        dump = result.stderr.split(f"({_FINAL_PASS}) //----- //\n")[1]
        return re.split(r"\n(?:\[ERROR\]|// -----//)", dump)[0]

    def signal_errors(self, final: str) -> str:
        """What tdist-opt has to say of the order of data and signals; empty when all is right."""
        result = self._tdist_opt(final, "--tdist-check-signal-order")
        assert (result.returncode != 0) == ("error:" in result.stderr), result.stderr
        return result.stderr

    def _tdist_opt(self, text: str, *flags: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [native.install_directory() / "bin" / "tdist-opt", "-", "--allow-unregistered-dialect", *flags],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )


def device_functions(final: str) -> set[str]:
    """Names of aclshmem's functions, and of ours, that the kernel calls."""
    return {name for name in _CALLEE.findall(final) if name.startswith(("aclshmem", "tdist_"))}
