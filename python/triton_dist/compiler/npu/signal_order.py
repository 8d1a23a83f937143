"""Whether a kernel's signals come after the data that they announce."""

from __future__ import annotations

from pathlib import Path

from triton_dist.compiler import scratch, toolchain


def check(final: str) -> None:
    """Refuse a kernel whose final IR, in generic form, has a signal before a store that is not known to be complete.

    Raises:
        KernelCompileError: it has; the text names the signal's line.
    """
    with scratch.directory() as directory:
        source = Path(directory, "final.mlir")
        source.write_text(final)
        command: list[str | Path] = [
            *(toolchain.tool("tdist-opt"), source, "--allow-unregistered-dialect", "--tdist-check-signal-order"),
            *("-o", "/dev/null"),
        ]
        toolchain.run(command, "checking that signals come after the data", temporary=directory)
