"""Autotuning of kernels that talk to other ranks: all ranks measure together, and take the same configuration."""

from __future__ import annotations

from triton_dist.compiler.autotune.together import install as install
