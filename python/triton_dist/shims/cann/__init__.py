"""`triton.language.extra.cann` for triton-ascend 3.2.0, which has it under older names only."""

from __future__ import annotations
