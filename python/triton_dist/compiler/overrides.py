"""Files that take the place of a stage's result (TRITON_KERNEL_OVERRIDE), for stages that Triton cannot read itself."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from triton.compiler import compiler

TEXT_STAGES = ("ttadapter", "llvmdialect")
BINARY_STAGES = ("so",)


def install() -> None:
    """Lets Triton, in this process only, read files of the stages of simulated NPUs."""
    parse = compiler.parse

    @functools.wraps(parse)
    def parse_ours_too(full_name: str, ext: str, context: Any) -> Any:
        if ext in TEXT_STAGES:
            return Path(full_name).read_text()
        if ext in BINARY_STAGES:
            return Path(full_name).read_bytes()
        return parse(full_name, ext, context)

    compiler.parse = parse_ours_too
