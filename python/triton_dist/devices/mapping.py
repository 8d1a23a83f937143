"""Reads `npu-smi info -m`: which chip the driver counts as which logical NPU."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBER = re.compile(r"[0-9]{1,9}")
_COLUMN = re.compile(r"\t+|\s{2,}")


@dataclass(frozen=True)
class MappedChip:
    """One line. `logical` and `physical` are None where it does not say, as for a card's controller (MCU)."""

    npu: int
    chip: int
    logical: int | None
    physical: int | None
    name: str


@dataclass(frozen=True)
class Mapping:
    """The lines that name a chip, and those that were not understood."""

    chips: tuple[MappedChip, ...]
    not_understood: tuple[str, ...]


def parse_mapping(text: str) -> Mapping:
    """Reads `text`, whatever it is: what makes no sense is in `not_understood`."""
    columns: dict[str, int] = {}
    chips: list[MappedChip] = []
    not_understood: list[str] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        cells = [cell.strip() for cell in _COLUMN.split(line.strip())]
        if not columns and "npu" in cells[0].lower() and len(cells) > 2:
            columns = {_key(cell): position for position, cell in enumerate(cells)}
        elif columns and (chip := _chip(cells, columns)):
            chips.append(chip)
        else:
            not_understood.append(line)
    return Mapping(tuple(chips), tuple(not_understood))


def _key(column: str) -> str:
    """The column's name without what differs from release to release: "Chip Logic ID" is "logic"."""
    words = column.lower().replace("-", " ").split()
    for word in ("logic", "phy", "name"):
        if any(found.startswith(word) for found in words):
            return word
    return words[0]


def _chip(cells: list[str], columns: dict[str, int]) -> MappedChip | None:
    def number(key: str) -> int | None:
        position = columns.get(key, len(cells))
        return int(cells[position]) if position < len(cells) and _NUMBER.fullmatch(cells[position]) else None

    npu, chip = number("npu"), number("chip")
    name = columns.get("name", len(cells))
    if npu is None or chip is None or len(cells) != len(columns) or name >= len(cells):
        return None
    return MappedChip(npu, chip, number("logic"), number("phy"), cells[name])
