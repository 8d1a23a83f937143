"""Triton kernels that talk to each other across Ascend NPUs, real or simulated."""

__version__ = "0.1.0"
