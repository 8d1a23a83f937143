"""Tables in the form of `npu-smi info`, for hosts of any size and for other layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Chip:
    """A chip to be shown; `phy` None leaves the column out."""

    npu: int
    chip: int = 0
    phy: int | None = None
    name: str = "910B3"
    health: str = "OK"
    used: int = 3380
    total: int = 65536
    aicore: int = 0


Process = tuple[int, int, int, str, int]
"""npu, chip, pid, name, MB."""


def info(
    chips: Sequence[Chip], processes: Sequence[Process] = (), *, column: str = "Phy-ID", cell: int = 28, pad: str = " "
) -> str:
    """The tables, `cell` characters wide in each column at least.

    Args:
        chips: in the table's order.
        processes: of the second table.
        column: what the second table column is called where chips have a `phy`.
        cell: width.
        pad: between a number and the slash after it.
    """

    def row(*cells: str) -> str:
        return "| " + " | ".join(text.ljust(cell) for text in cells) + " |"

    rule = "+" + "+".join("=" * (cell + 2) for _ in range(3)) + "+"
    with_phy = any(chip.phy is not None for chip in chips)
    lines = [
        "+" + "-" * (3 * cell + 8) + "+",
        "| npu-smi 25.5.0".ljust(cell) + "Version: 25.5.0 |",
        rule.replace("=", "-"),
        row("NPU   Name", "Health", "Power(W)    Temp(C)           Hugepages-Usage(page)"),
        row(f"Chip  {column if with_phy else ''}", "Bus-Id", "AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)"),
        rule,
    ]
    for chip in chips:
        phy = "" if chip.phy is None else str(chip.phy)
        lines += [
            row(f"{chip.npu}  {chip.name}", chip.health, f"90.1  40  0{pad}/ 0"),
            row(
                f"{chip.chip}  {phy}",
                f"0000:{chip.npu:02X}:0{chip.chip}.0",
                f"{chip.aicore}  0{pad}/ 0  {chip.used}{pad}/ {chip.total}",
            ),
            rule,
        ]
    lines += [rule, row("NPU     Chip", "Process id", "Process name", "Process memory(MB)"), rule]
    lines += [row(f"{npu}  {chip}", str(pid), name, str(memory)) for npu, chip, pid, name, memory in processes]
    quiet = {chip.npu for chip in chips} - {process[0] for process in processes}
    lines += [f"| No running processes found in NPU {npu} |" for npu in sorted(quiet)]
    return "\n".join([*lines, rule, ""])


def topology(rows: Sequence[Sequence[str]], cores: Sequence[str] | None, label: str = "NPU", first: int = 0) -> str:
    """The matrix of `npu-smi info -t topo`; without the last column if `cores` is None."""
    names = [f"{label}{first + number}" for number in range(len(rows))]
    lines = ["\t   " + "       ".join(names) + ("       CPU Affinity" if cores else "")]
    for number, links in enumerate(rows):
        lines.append("   ".join([names[number].ljust(10), *links, *([cores[number]] if cores else [])]))
    return "\n".join([*lines, "", "Legend:", "", "  X    = Self", "  NA   = Unknown relationship.", ""])
