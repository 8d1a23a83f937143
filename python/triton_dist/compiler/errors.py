"""Errors of the compiler stages."""

from __future__ import annotations


class KernelCompileError(RuntimeError):
    """A stage between Triton IR and the binary failed. The text names the kernel's source line where it is known."""
