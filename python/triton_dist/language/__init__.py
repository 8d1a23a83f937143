"""What a kernel may call to talk to other NPUs (``import triton_dist.language as dl``).

All functions work inside ``@triton.jit`` functions only and raise RuntimeError elsewhere. Misuse is
a ``triton.CompilationError`` at the line of the call.
"""

from __future__ import annotations

from . import extra
from ._primitives import consume_token, extern_call, notify, num_ranks, rank, symm_at, wait

__all__ = [
    "consume_token",
    "extern_call",
    "extra",
    "notify",
    "num_ranks",
    "rank",
    "symm_at",
    "wait",
]
