"""aclshmem's staging buffer: puts, gets and remote adds copy through a part of UB that the compiler may use too."""

from __future__ import annotations

import re
from dataclasses import dataclass

from triton_dist.compiler.npu.final_ir import UB, FinalIR
from triton_dist.compiler.npu.locations import line_of

_STAGED = re.compile(r"_(?:put|get)mem|_signal_op|_(?:atomic_)?add\b|_(?:put|get)(?:_nbi)?$")
_KIB = 1024


@dataclass(frozen=True)
class Staging:
    """Where the buffer is.

    Attributes:
        offset: its first byte in UB; None for the last `size` bytes that the SoC has.
        size: in bytes.
    """

    offset: int | None
    size: int


DEFAULT = Staging(0, 16 * _KIB)
"""What aclshmem takes until `aclshmemx_set_mte_config` says otherwise; source: its initial state."""
AT_THE_END = Staging(None, 16 * _KIB)
"""Where it is out of the way of most kernels."""


def parse(text: str) -> Staging:
    """`end`, or `OFFSET:SIZE` in bytes.

    Raises:
        ValueError: anything else.
    """
    if text == "end":
        return AT_THE_END
    offset, colon, size = text.partition(":")
    if not (colon and offset.isdecimal() and size.isdecimal() and int(size) > 0):
        raise ValueError(f"{text!r} is not a staging buffer: give OFFSET:SIZE in bytes, such as 0:16384, or end")
    return Staging(int(offset), int(size))


def overlap(final: FinalIR, staging: Staging) -> str:
    """What is wrong where the kernel's buffers and the staging buffer share bytes of UB, and the setting that mends it.

    "" where they do not, or where the kernel calls nothing that stages.
    """
    staged = [symbol for symbol in final.symbols if _STAGED.search(symbol)]
    available = final.available.get(UB, 0)
    begin = available - staging.size if staging.offset is None else staging.offset
    end = begin + staging.size
    if not staged or not available:
        return ""
    calls = f"{', '.join(staged)} copies through" if len(staged) == 1 else f"{', '.join(staged)} copy through"
    if end > available or begin < 0:
        return (
            f"{calls} bytes {begin} to {end} of UB, and {available} bytes are there: "
            f"{_mend(available, final.used(UB), staging.size)}"
        )
    hit = next((a for a in final.areas if a.space == UB and a.begin < end and begin < a.end), None)
    if hit is None:
        return ""
    where = f"{line_of(hit.place)}: " if hit.place else ""
    return (
        f"{where}{calls} bytes {begin} to {end} of UB (aclshmem's staging buffer), where this kernel has its own data "
        f"(bytes {hit.begin} to {hit.end}), which would be overwritten: "
        f"{_mend(available, final.used(UB), staging.size)}"
    )


def _mend(available: int, used: int, size: int) -> str:
    free = available - used
    if free >= size:
        offset = available - size
        return (
            f"call aclshmemx_set_mte_config({offset}, {size}, 0) after initialisation, and compile with "
            f"--staging {offset}:{size} (or --staging end)"
        )
    if free >= 64 * 8:
        smaller = free // 32 * 32
        offset = available - smaller
        return (
            f"{free} bytes are free: call aclshmemx_set_mte_config({offset}, {smaller}, 0) after initialisation, and "
            f"compile with --staging {offset}:{smaller}"
        )
    return "nothing of UB is free: make the kernel's tiles smaller, then move the buffer behind them"
