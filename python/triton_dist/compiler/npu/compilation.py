"""Compiles one kernel for one SoC on a machine without NPUs, with the command lines that a launch would use.

triton-ascend's own stages run, with ours between them. Its last stage asks the NPU for its name, and then runs
bishengir-compile; here the question is answered, and the compiler prints the IR before its last step on the way. That
step, hivmc, is part of CANN: where it is missing, what comes before it is all that can be known.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from triton._C.libtriton import ir
from triton.backends.ascend import compiler as stock
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource
from triton.compiler.errors import CompilationError

from triton_dist.compiler import adapter, check_pointers
from triton_dist.compiler import options as known_options
from triton_dist.compiler.errors import KernelCompileError
from triton_dist.compiler.npu import (
    command_line,
    device_library,
    diagnosis,
    dropped,
    final_ir,
    foreign_symbols,
    lowering,
    signal_order,
    staging,
    tools,
)
from triton_dist.compiler.npu.backend import STAGE, wrapped

OK, FAILED, BLOCKED = "ok", "failed", "blocked"


@dataclass(frozen=True)
class Request:
    """What to compile.

    Attributes:
        kernel: a function with `@triton.jit`.
        name: how results call it.
        signature: Triton's type of each parameter that is no constant, such as `*fp16` or `i32`.
        constants: the values of the others.
        options: compiler options.
        soc: name of the SoC.
        staging: where aclshmem's puts and gets have their buffer in UB.
    """

    kernel: Any
    name: str
    signature: Mapping[str, str]
    constants: Mapping[str, Any]
    options: Mapping[str, Any]
    soc: str
    staging: staging.Staging = staging.DEFAULT


@dataclass
class Result:
    """What came of it.

    Attributes:
        name, target: of the request.
        state: `ok`, `failed`, or `blocked`: the NPU's compiler gives up on something that the kernel cannot help.
        used, available: bytes of each local memory (UB, L1, L0A, L0B, L0C); empty where nothing is known.
        core: `aiv`, `aic` or `mix`; "" where it is not known.
        symbols: functions of aclshmem that the kernel calls.
        seconds: how long it took.
        message: why it is not ok, in a line or a few; the first begins with the kernel's line where that is known.
        warnings: what the front end drops or changes, each with the kernel's line.
        linked: whether the last step has run too.
        stages: IR by stage: `ttir`, `linalg`, `hivm`, `llvm`; as far as the kernel got.
        command: the compiler's command line, as a launch passes it.
    """

    name: str
    target: str
    state: str = OK
    used: dict[str, int] = field(default_factory=dict)
    available: dict[str, int] = field(default_factory=dict)
    core: str = ""
    symbols: list[str] = field(default_factory=list)
    seconds: float = 0.0
    message: str = ""
    warnings: list[str] = field(default_factory=list)
    linked: bool = False
    stages: dict[str, str] = field(default_factory=dict)
    command: list[str] = field(default_factory=list)


class _FailedError(Exception):
    """A kernel that does not compile, and whether its author can help that."""

    def __init__(self, message: str, state: str = FAILED) -> None:
        super().__init__(message)
        self.state = state


def defaults_for(soc: str) -> dict[str, Any]:
    """Compiler options whose default triton-ascend chooses by the SoC that it finds."""
    if not tools.is_a5(soc):
        return {}
    return {
        "compile_on_910_95": True,
        "multibuffer": False,
        "enable_auto_bind_sub_block": False,
        "enable_select_analysis": True,
    }


def compile_kernel(request: Request) -> Result:
    """Compile `request` as far as this machine can."""
    result = Result(request.name, request.soc)
    begin = time.monotonic()
    try:
        _run_stages(request, result)
    except _FailedError as failure:
        result.state, result.message = failure.state, str(failure)
    except KernelCompileError as error:
        result.state, result.message = FAILED, diagnosis.of_tool(str(error))
    except (TypeError, ValueError) as error:
        result.state, result.message = FAILED, str(error)
    except CompilationError as error:
        result.state, result.message = FAILED, diagnosis.of_front_end(error, request.kernel)
    result.seconds = time.monotonic() - begin
    return result


def _run_stages(request: Request, result: Result) -> None:
    target = GPUTarget("npu", request.soc, 0)
    backend = wrapped(stock.AscendBackend, _library_if_linked)(target)
    known_options.check(request.options, f"kernel {request.name}", request.kernel.arg_names)
    options = backend.parse_options({**defaults_for(request.soc), **request.options})
    metadata: dict[str, Any] = {"hash": request.name, "target": target, **options.__dict__}
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    source = ASTSource(request.kernel, dict(request.signature), dict(request.constants))
    module = source.make_ir(options, backend.get_codegen_implementation(), backend.get_module_map(), context)
    text: Any = stages["ttir"](module, metadata)
    result.stages["ttir"] = ttir = str(text)
    check_pointers.check(ttir, request.kernel.__name__)
    for name in [name for name in stages if name not in ("ttir", STAGE, backend.binary_ext)]:
        with _with_locations(stock):
            text = _adapted(stages[name], text, metadata)
        result.stages["linalg"] = text
    result.warnings = dropped.warnings(request.kernel, ttir, result.stages["linalg"])
    if unknown := foreign_symbols.unknown(ttir):
        raise _FailedError(unknown)
    lowered = stages[STAGE](text, metadata)
    result.stages["hivm"] = lowered
    result.symbols = lowering.symbols(lowered)
    _make_binary(stages[backend.binary_ext], lowered, metadata, request, result)


def _adapted(stage: Any, text: Any, metadata: dict[str, Any]) -> Any:
    try:
        return stage(text, metadata)
    except subprocess.CalledProcessError as error:
        raise KernelCompileError(adapter.failure(error)) from error


def _make_binary(stage: Any, lowered: str, metadata: dict[str, Any], request: Request, result: Result) -> None:
    tap = command_line.Tap(final_ir.DUMP_FLAGS)
    try:
        with command_line.tapped(tap), _without_device(stock, request.soc):
            stage(lowered, metadata)
        result.linked = True
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        if not tap.command:
            raise
        reached = diagnosis.reached_last_step(tap.stderr)
        if not reached or tools.last_step(request.soc) is not None:
            _explain(error, tap, lowered, request, result)
    finally:
        result.command = [flag for flag in tap.command if flag not in final_ir.DUMP_FLAGS]
    printed = final_ir.dumps(tap.stderr)
    if not printed:
        raise _FailedError(f"bishengir-compile printed no IR after {final_ir.LAST_PASS}: its release is not known here")
    final = final_ir.read(printed[-1])
    result.stages["llvm"] = final.text
    result.available, result.core = final.available, final.core
    result.used = {space: final.used(space) for space in final.available}
    # Which functions of the final IR belong to a library of the user's, only the IR before it says.
    foreign = [symbol for symbol in result.symbols if not symbol.startswith(("aclshmem", "tdist_"))]
    result.symbols = [*final.symbols, *foreign]
    if final.symbols:
        signal_order.check(final.text)
    overlap = staging.overlap(final, request.staging)
    if overlap:
        raise _FailedError(overlap)


def _explain(error: Exception, tap: command_line.Tap, lowered: str, request: Request, result: Result) -> None:
    """Raise what the compiler's failure means to the author of the kernel."""
    if isinstance(error, FileNotFoundError):
        raise _FailedError(f"{tools.last_step(request.soc) or 'bishengir-compile'} made no binary") from error
    overflow = diagnosis.overflow(tap.stderr)
    if overflow is not None:
        result.used, result.available = {overflow.space: overflow.needed}, {overflow.space: overflow.available}
        before = diagnosis.before_memory_planning(tap.command, lowered)
        raise _FailedError(diagnosis.explain_overflow(overflow, before, request.constants)) from error
    returncode = error.returncode if isinstance(error, subprocess.CalledProcessError) else 0
    gives_up = diagnosis.gives_up(returncode, tap.stderr) or (tools.is_a5(request.soc) and bool(result.symbols))
    raise _FailedError(diagnosis.of_compiler(tap.stderr), BLOCKED if gives_up else FAILED) from error


def _library_if_linked(soc: str, mix_mode: str, symbols: Any) -> list[Path]:
    """The device library, where the last step is there to link it."""
    return device_library.find(soc, mix_mode, symbols) if tools.last_step(soc) is not None else []


class _NoDevice:
    """Stands in for triton-ascend's questions to the NPU."""

    def __init__(self, soc: str) -> None:
        self._soc = soc

    def __call__(self) -> _NoDevice:
        return self

    def get_arch(self) -> str:
        """Name of the SoC."""
        return self._soc

    def has_device_limit(self) -> bool:
        """Whether only a part of the cores may be used."""
        return False


@contextmanager
def _replaced(module: ModuleType, name: str, value: Any) -> Iterator[None]:
    before = getattr(module, name, None)
    if before is None:
        yield
        return
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


@contextmanager
def _without_device(module: ModuleType, soc: str) -> Iterator[None]:
    with _replaced(module, "NPUUtils", _NoDevice(soc)):
        yield


@contextmanager
def _with_locations(module: ModuleType) -> Iterator[None]:
    """Have the adapter keep the kernel's lines, also where the environment leaves line information out of binaries."""
    with _replaced(module, "_is_debug_line_info_disabled", lambda: False):
        yield
