"""Results of compilations as rows: for programs, and as a table for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from triton_dist.compiler.npu.compilation import BLOCKED, FAILED, OK, Result
from triton_dist.compiler.npu.final_ir import L0A, L0B, L0C, L1, UB

_KIB = 1024
_STYLES = {OK: "green", FAILED: "red", BLOCKED: "yellow"}
_HEAD = ("kernel", "target", "state", "UB used / has", "L1", "L0C", "core", "aclshmem calls", "time")


def as_row(result: Result) -> dict[str, Any]:
    """What JSON has of a result; sizes in bytes, None where they are not known."""
    memory = {
        f"{space.lower()}_{what}": sizes.get(space)
        for space in (L1, L0A, L0B, L0C)
        for what, sizes in (("used", result.used), ("available", result.available))
    }
    return {
        "kernel": result.name,
        "target": result.target,
        "state": result.state,
        "ub_used": result.used.get(UB),
        "ub_available": result.available.get(UB),
        "symbols": result.symbols,
        "seconds": round(result.seconds, 3),
        "message": result.message,
        "core": result.core,
        **memory,
        "linked": result.linked,
        "warnings": result.warnings,
        "command": result.command,
    }


def lines(results: Sequence[Result], paint: Callable[[str, str], str], shown: Callable[[str], str]) -> list[str]:
    """A table of the results, each followed by what is to say of it; `shown` shortens places in texts."""
    cells = [_HEAD, *(_cells(result) for result in results)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_HEAD))]
    printed = [paint("bold", _joined(_HEAD, widths))]
    told: set[tuple[str, str]] = set()
    for result, row in zip(results, cells[1:], strict=True):
        text = _joined(row, widths)
        begin = 1 + widths[0] + 2 + widths[1] + 2
        end = begin + len(row[2])
        printed.append(text[:begin] + paint(_STYLES[result.state], row[2]) + text[end:])
        printed += [f"   {line}" for line in shown(result.message).splitlines()]
        # What the front end drops, it drops for each SoC.
        new = [warning for warning in result.warnings if (result.name, warning) not in told]
        told.update((result.name, warning) for warning in new)
        printed += [f"   {paint('yellow', 'warning')} {shown(warning)}" for warning in new]
    return printed


def summary(results: Sequence[Result]) -> str:
    """How many there are of each state, in a line."""
    counts = {state: sum(result.state == state for result in results) for state in (OK, FAILED, BLOCKED)}
    warnings = sum(len(result.warnings) for result in results)
    parts = [f"{count} {state}" for state, count in counts.items() if count or state == OK]
    if warnings:
        parts.append(f"{warnings} warning{'s' if warnings > 1 else ''}")
    return ", ".join(parts)


def _cells(result: Result) -> tuple[str, ...]:
    calls = ", ".join(symbol.removeprefix("aclshmemx_").removeprefix("aclshmem_") for symbol in result.symbols)
    state = result.state if result.state == OK else result.state.upper()
    memory = tuple(_size(result, space) for space in (UB, L1, L0C))
    return (result.name, result.target, state, *memory, result.core, calls or "-", f"{result.seconds:.1f} s")


def _size(result: Result, space: str) -> str:
    if space not in result.used:
        return "-"
    return f"{_kib(result.used[space])} / {_kib(result.available[space])} KiB"


def _kib(count: int) -> str:
    return str(count // _KIB) if count % _KIB == 0 else f"{count / _KIB:.1f}"


def _joined(cells: Sequence[str], widths: Sequence[int]) -> str:
    return f" {'  '.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))}".rstrip()
