"""Compiles kernels as far as linalg IR, with the stock wheel and without an NPU or a driver."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import triton
from triton._C.libtriton import ir
from triton.backends.ascend import compiler as stock
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource

_CONSTANT = re.compile(r"(%[\w-]+) = arith\.constant (-?\d+|true|false)")
_EXTERN = re.compile(
    r"(?P<result>%\w+) = tt\.extern_elementwise (?P<operands>[^{]*?) ?\{libname = \"(?P<library>[^\"]*)\", "
    r"libpath = \"(?P<path>[^\"]*)\", pure = (?P<pure>true|false), symbol = \"(?P<symbol>[^\"]+)\"\}"
    r" : \((?P<types>[^)]*)\) -> (?P<type>[\w<>!.]+)"
)


@dataclass(frozen=True)
class Extern:
    """One extern call in Triton IR.

    Attributes:
        operands: SSA names, or the value where an operand is an integer constant.
        types: MLIR types of the operands.
    """

    symbol: str
    operands: tuple[str | int, ...]
    types: tuple[str, ...]
    result: str
    type: str
    pure: bool
    library: str
    path: str


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel after the front half of the compiler: Triton IR, and linalg IR of the stock adapter."""

    ttir: str
    linalg: str

    @property
    def externs(self) -> list[Extern]:
        """The extern calls in the Triton IR, in order."""
        constants = {name: int(value) for name, value in _CONSTANT.findall(self.ttir) if value.lstrip("-").isdigit()}
        return [
            Extern(
                symbol=call["symbol"],
                operands=tuple(constants.get(name, name) for name in call["operands"].split(", ")),
                types=tuple(call["types"].split(", ")),
                result=call["result"],
                type=call["type"],
                pure=call["pure"] == "true",
                library=call["library"],
                path=call["path"],
            )
            for call in _EXTERN.finditer(self.ttir)
        ]


class KernelCompiler:
    """Runs the stages one by one, so that nothing is cached and nothing is launched."""

    def ttir(
        self, kernel: Any, signature: Mapping[str, str], soc: str = "Ascend910B3", **constants: Any
    ) -> tuple[Any, dict[str, Any], Any]:
        """Module, metadata and options after `make_ttir`. `constants` become constexpr arguments."""
        backend = stock.AscendBackend(GPUTarget("npu", soc, 0))
        options = backend.parse_options({})
        context = ir.context()
        ir.load_dialects(context)
        codegen = {**backend.get_codegen_implementation(), "triton_dist_soc": soc}
        source = ASTSource(kernel, dict(signature), constants, None)
        module = source.make_ir(options, codegen, backend.get_module_map(), context)
        metadata = {"hash": kernel.__name__, **options.__dict__}
        # The module does not keep its context alive.
        metadata["context"] = context
        return stock.make_ttir(module, metadata, options), metadata, options

    def __call__(
        self, kernel: Any, signature: Mapping[str, str], soc: str = "Ascend910B3", **constants: Any
    ) -> CompiledKernel:
        module, metadata, options = self.ttir(kernel, signature, soc, **constants)
        return CompiledKernel(str(module), stock.ttir_to_linalg(module, metadata, options, named_ops=True))

    def error(
        self, kernel: Any, signature: Mapping[str, str], soc: str = "Ascend910B3", **constants: Any
    ) -> triton.CompilationError:
        """The error of a kernel that must not compile."""
        with pytest.raises(triton.CompilationError) as caught:
            self.ttir(kernel, signature, soc, **constants)
        return caught.value
