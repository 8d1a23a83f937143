"""Triton kernels that talk to each other across Ascend NPUs, real or simulated.

PYTEST_DONT_REWRITE: it is imported when an interpreter starts, so that pytest would warn that it comes too late.
"""

__version__ = "0.1.0"
