"""triton-ascend's own lowering tool, triton-adapter-opt, and what it says when it fails."""

from __future__ import annotations

import subprocess
from pathlib import Path

import triton.backends.ascend as ascend_package


def path() -> Path:
    """The tool, as triton-ascend's wheel ships it."""
    return Path(ascend_package.__file__).parent / "triton-adapter-opt"


def failure(error: subprocess.CalledProcessError) -> str:
    """The lines of the tool's output that say something: its errors, not its stack dump."""
    text = (error.stderr or b"").decode(errors="replace")
    lines = [line for line in text.splitlines() if " error: " in line or line.startswith("error:")]
    detail = "\n".join(lines) if lines else text.strip()[-2000:]
    return f"triton-ascend cannot lower this kernel (triton-adapter-opt):\n{detail}"
