"""Results of compilations, kept by the content of what they depend on."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from triton.compiler.compiler import triton_key

from triton_dist import env
from triton_dist.compiler import adapter, stage_cache
from triton_dist.compiler.npu import device_library, lowering, tools
from triton_dist.compiler.npu.compilation import FAILED, Request, Result, compile_kernel

# What else changes the compiler's command line.
_VARIABLES = (
    env.TRITON_DISABLE_LINE_INFO,
    env.TRITON_ENABLE_SANITIZER,
    env.ENABLE_PRINT_UB_BITS,
    env.TRITON_ALL_BLOCKS_PARALLEL,
    env.TRITON_DISABLE_FFTS,
)


def compiled(request: Request) -> Result:
    """What `compile_kernel` gives, without IR; what was compiled with the same tools is not compiled again.

    A failure is not kept: it may be the machine's.
    """

    def produce() -> bytes:
        result = compile_kernel(request)
        result.stages = {}
        if result.state == FAILED:
            raise _NotKeptError(result)
        return json.dumps(asdict(result)).encode()

    try:
        return Result(**json.loads(stage_cache.produce_once("outcome.json", _parts(request), produce)))
    except _NotKeptError as failure:
        return failure.result


class _NotKeptError(Exception):
    def __init__(self, result: Result) -> None:
        super().__init__(result.message)
        self.result = result


def prepare() -> None:
    """Read once, before children are forked, what each of them would read: the tools that results depend on."""
    _tools()
    lowering.fingerprint()


def _parts(request: Request) -> Iterator[str]:
    # Messages name the kernel's file: equal kernels of two files are two.
    yield f"{request.kernel.cache_key} {request.kernel.fn.__code__.co_filename} {request.name} {request.soc}"
    yield repr((request.signature, request.constants, request.options, request.staging))
    yield f"{_tools()} {lowering.fingerprint()} {device_library.fingerprint()} {tools.last_step(request.soc)}"
    yield repr([variable.text() for variable in _VARIABLES])


@functools.cache
def _tools() -> str:
    ours = [file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py"))]
    parts = [triton_key(), tools.version(), adapter.path().read_bytes(), *ours]
    return stage_cache.digest(parts)
