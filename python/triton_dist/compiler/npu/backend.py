"""triton-ascend's backend with our stage in it.

The class derives from whichever triton-ascend is installed and changes what it finds there, not what a release is
known to have: 3.2.0 has the stages ttir, ttadapter and npubin; later ones have more of them between the adapter and
the binary, give add_stages the language and get_codegen_implementation the options, and take bitcode to link as
metadata. Ours is always the last before the binary, where the IR is in the syntax that bishengir-compile reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from triton_dist.compiler.errors import KernelCompileError
from triton_dist.compiler.npu import command_line, device_library, lowering

STAGE = "ttdist"
_BITCODES = "bitcodes"
_LIBRARIES = "triton_dist_libraries"
_Stage = Callable[[Any, dict[str, Any]], Any]
Library = Callable[[str, str, Sequence[str]], list[Path]]
"""The bitcode files that have these symbols, for a SoC and the cores that a kernel runs on (aiv, aic or mix)."""


def wrapped(stock_class: type, library: Library = device_library.find) -> type:
    """A subclass of triton-ascend's compiler class that lowers distributed ops and links their device library."""
    # Triton loads its backends without a name in sys.modules: a method knows its module's namespace.
    stock: dict[str, Any] = stock_class.add_stages.__globals__  # type: ignore[attr-defined]
    command_line.watch(stock)
    adapter = Path(stock["__file__"]).with_name("triton-adapter-opt")

    class DistributedNPUBackend(stock_class):  # type: ignore[misc]
        """Compiles a kernel for an Ascend NPU, as triton-ascend does, with distributed ops."""

        lowers_distributed_ops = True

        def get_codegen_implementation(self, *arguments: Any, **named: Any) -> dict[str, Any]:
            """Triton's table for code generation, with the SoC that the device language checks a kernel against."""
            table: dict[str, Any] = super().get_codegen_implementation(*arguments, **named)
            return {**table, "triton_dist_soc": self.target.arch}

        def hash(self) -> str:
            """What the binary depends on besides the kernel and its options."""
            return f"{super().hash()}-{lowering.fingerprint()}-{device_library.fingerprint()}"

        def add_stages(self, stages: dict[str, Any], *arguments: Any, **named: Any) -> None:
            """triton-ascend's stages, and ours before the one that makes the binary."""
            super().add_stages(stages, *arguments, **named)
            _insert(stages, self.binary_ext, self.target.arch, adapter, library)

    return DistributedNPUBackend


def _insert(stages: dict[str, Any], binary: str, soc: str, adapter: Path, library: Library) -> None:
    names = list(stages)
    if binary not in names or names.index(binary) != len(names) - 1:
        raise KernelCompileError(
            f"this triton-ascend has the stages {', '.join(names)}: triton-dist expects {binary} to be the last"
        )
    make_stock_binary: _Stage = stages.pop(binary)
    before = names[-2] if len(names) > 1 else ""
    if before in ("", "ttir"):
        stages[binary] = _refusing(make_stock_binary)
        return
    reader = lowering.reader(adapter, before)

    def lower(text: Any, metadata: dict[str, Any]) -> Any:
        if not lowering.is_needed(text):
            return text
        metadata[_LIBRARIES] = lowering.libraries(text)
        return lowering.lower(text, soc, reader)

    def make_binary(text: str, metadata: dict[str, Any]) -> Any:
        symbols = lowering.symbols(text)
        if not symbols:
            return make_stock_binary(text, metadata)
        named: dict[str, str] = metadata.get(_LIBRARIES, {})
        found = library(soc, _mix_mode(text), [symbol for symbol in symbols if symbol not in named])
        paths = [*found, *(Path(path) for path in dict.fromkeys(named.values()))]
        if not paths:
            return make_stock_binary(text, metadata)
        if _BITCODES in metadata:
            metadata[_BITCODES] = [*(metadata[_BITCODES] or ()), *map(str, paths)]
            return make_stock_binary(text, metadata)
        device_library.check_compiler()
        added = [f"--{device_library.FLAG}={','.join(map(str, paths))}"]
        with command_line.tapped(command_line.Tap(added)):
            return make_stock_binary(text, metadata)

    stages[STAGE] = lower
    stages[binary] = make_binary


def _refusing(make_stock_binary: _Stage) -> _Stage:
    def make_binary(module: Any, metadata: dict[str, Any]) -> Any:
        if 'symbol = "tdist_' in str(module):
            raise KernelCompileError(
                "compile_mode='simt_only' has no linalg stage, which distributed ops need: use compile_mode='simd'"
            )
        return make_stock_binary(module, metadata)

    return make_binary


def _mix_mode(text: str) -> str:
    return next((mode for mode in ("aiv", "aic", "mix") if f'mix_mode = "{mode}"' in text), "mix")
