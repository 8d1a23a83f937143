"""Device functions beyond the portable primitives."""

from __future__ import annotations

from . import libshmem_device

__all__ = ["libshmem_device"]
