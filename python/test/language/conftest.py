"""Compiles kernels as far as linalg IR."""

from __future__ import annotations

import pytest
from kernel_compiler import KernelCompiler


@pytest.fixture
def compile_kernel() -> KernelCompiler:
    return KernelCompiler()
