"""Our stage: distributed ops of linalg IR become what bishengir-compile knows."""

from __future__ import annotations

import functools
import re
from pathlib import Path

from triton_dist.compiler import scratch, toolchain
from triton_dist.compiler.npu import tools
from triton_dist.compiler.stage_cache import digest

_EXTERN = re.compile(r'"?tt\.extern_elementwise"?.*?libpath = "(?P<path>[^"]*)".*?symbol = "(?P<symbol>\w+)"')
_SYMBOL = re.compile(r"@(?:_mlir_ciface_)?((?:aclshmemx?|tdist)_\w+)|\bsymbol = \"(\w+)\"")


def is_needed(linalg: str) -> bool:
    """Whether the kernel calls anything that only our stage can lower."""
    return "tt.extern_elementwise" in linalg


def symbols(text: str) -> list[str]:
    """Symbols of a device library that the lowered IR calls, sorted."""
    return sorted({first or second for first, second in _SYMBOL.findall(text)})


def libraries(linalg: str) -> dict[str, str]:
    """The bitcode file that the kernel itself names for a symbol that it calls (by extern_call), where it names one."""
    return {call["symbol"]: call["path"] for call in _EXTERN.finditer(linalg) if call["path"]}


def lower(linalg: str, soc: str, adapter: Path) -> str:
    """Lower the distributed ops of `linalg` for the SoC; `adapter` is the tool that reads the IR's foreign dialects.

    Raises:
        KernelCompileError: a tool refuses the kernel; the text has its diagnostics, with the kernel's lines.
    """
    generic = toolchain.to_generic(linalg, adapter)
    with scratch.directory() as directory:
        source, result = Path(directory, "in.mlir"), Path(directory, "out.mlir")
        source.write_text(generic)
        command: list[str | Path] = [
            *(toolchain.tool("tdist-opt"), source, "--allow-unregistered-dialect", "--mlir-print-debuginfo"),
            *(f"--tdist-lower-to-hivm=soc={soc}", "-o", result),
        ]
        toolchain.run(command, f"lowering the kernel for {soc}", temporary=directory)
        return result.read_text()


def reader(adapter: Path, stage: str) -> Path:
    """The tool that reads the IR of `stage`: the adapter its own, bishengir-opt what comes behind it."""
    if stage == "ttadapter":
        return adapter
    return tools.compiler().with_name("bishengir-opt")


@functools.cache
def fingerprint() -> str:
    """A digest of the tool that lowers."""
    return digest([toolchain.tool("tdist-opt").read_bytes()])
