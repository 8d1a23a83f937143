"""Runs kernels as plain Python, on Triton's interpreter, when TRITON_INTERPRET=1 (see docs/debugging.md)."""
