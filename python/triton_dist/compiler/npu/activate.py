"""Puts our stage into triton-ascend's backend, in this process only and without touching an installed file."""

from __future__ import annotations

from typing import Any


def activate() -> None:
    """Make the backend that launches on Ascend NPUs one that knows distributed ops. Calling it again changes nothing.

    Called right after `import triton`, when the backend is `ascend` (see triton_dist.activation). Driver and launcher
    stay triton-ascend's.
    """
    from triton.backends import Backend, backends

    from triton_dist.compiler.npu.backend import wrapped

    stock: Any = backends["ascend"]
    if not getattr(stock.compiler, "lowers_distributed_ops", False):
        backends["ascend"] = Backend(wrapped(stock.compiler), stock.driver)
