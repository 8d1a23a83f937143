"""Reads the tables of `npu-smi info`: chips, two lines each, and the processes on them.

Widths, rules and columns change from release to release, and numbers touch the slashes beside them
(`32446/ 65536`). So cells are told apart by the bars, columns by the names in the header, and a line that is none of
those known is handed back instead of being guessed at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_RULE = frozenset("+-=| ")
_VERSION = re.compile(r"npu-smi\s+(\S+)")
_NONE_RUNNING = re.compile(r"no running processes found", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,9}")
_BUS_ID = re.compile(r"(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]")
_OF_TOTAL = re.compile(r"([0-9]{1,9})\s*/\s*([0-9]{1,9})")
# Second columns of the line that starts with "Chip", by which newer and older releases give the physical number.
_PHYSICAL_COLUMNS = ("phy-id", "device")


@dataclass(frozen=True)
class ChipRow:
    """One chip, as the table has it.

    Attributes:
        npu, chip: its NPU id, and its number within that.
        physical: the number of its device node; None where the table does not say.
        name: such as 910B3 or Ascend910.
        health: OK, Warning, Alarm, Critical or another word.
        bus_id: on the PCI bus; None if there is none.
        memory: MB used and MB there are, of the HBM where it has any; None if the table does not say.
        aicore: load of its AI cores in percent; None if the table does not say.
    """

    npu: int
    chip: int
    physical: int | None
    name: str
    health: str
    bus_id: str | None
    memory: tuple[int, int] | None
    aicore: int | None


@dataclass(frozen=True)
class ProcessRow:
    """A process on a chip; `memory` in MB, None if the table does not say."""

    npu: int
    chip: int
    pid: int
    name: str
    memory: int | None


@dataclass(frozen=True)
class InfoTable:
    """What `npu-smi info` printed.

    Attributes:
        version: of npu-smi; None if it does not say.
        chips, processes: in the order of the tables.
        not_understood: lines that are none of those known, as they stand.
    """

    version: str | None
    chips: tuple[ChipRow, ...]
    processes: tuple[ProcessRow, ...]
    not_understood: tuple[str, ...]


def parse_info(text: str) -> InfoTable:
    """Reads `text`, whatever it is: what makes no sense is in `not_understood`."""
    reader = _Reader()
    for line in text.splitlines():
        reader.read(line)
    return reader.table()


@dataclass
class _Reader:
    """Goes through the lines, knowing under which header it is."""

    version: str | None = None
    chips: dict[tuple[int, int], ChipRow] = field(default_factory=dict)
    processes: list[ProcessRow] = field(default_factory=list)
    not_understood: list[str] = field(default_factory=list)
    in_processes: bool = False
    columns: list[str] = field(default_factory=list)
    # The first line of a chip whose second has not come yet.
    first: tuple[str, list[str]] | None = None

    def read(self, line: str) -> None:
        stripped = line.strip()
        if not _RULE.issuperset(stripped):
            cells = [cell.strip() for cell in stripped.strip("|").split("|")]
            if not (stripped.startswith("|") and self._understand(line, cells)):
                self.not_understood.append(line)

    def table(self) -> InfoTable:
        self._drop_first()
        return InfoTable(self.version, tuple(self.chips.values()), tuple(self.processes), tuple(self.not_understood))

    def _understand(self, line: str, cells: list[str]) -> bool:
        if len(cells) == 1:
            return self._banner(cells[0])
        words = cells[0].lower().split()
        if words[:1] in (["npu"], ["chip"]):
            self._drop_first()
            self._header(words, cells)
            return True
        if self.in_processes:
            return self._process(cells)
        if self.first is not None and all(map(_NUMBER.fullmatch, words)) and 1 <= len(words) <= 2:
            return self._second(cells)
        self._drop_first()
        if len(words) >= 2 and _NUMBER.fullmatch(words[0]):
            self.first = (line, cells)
            return True
        return False

    def _banner(self, text: str) -> bool:
        if found := _VERSION.search(text):
            self.version = found[1]
        return bool(found or _NONE_RUNNING.search(text))

    def _header(self, words: list[str], cells: list[str]) -> None:
        self.in_processes = any("process" in cell.lower() for cell in cells)
        if words[0] == "chip":
            self.columns = " ".join(cells).lower().split()

    def _drop_first(self) -> None:
        """A chip with half of its lines is none."""
        if self.first is not None:
            self.not_understood.append(self.first[0])
            self.first = None

    def _second(self, cells: list[str]) -> bool:
        assert self.first is not None
        _, above = self.first
        npu, *name = above[0].split()
        chip, *further = map(int, cells[0].split())
        if (int(npu), chip) in self.chips:
            self._drop_first()
            return False
        self.first = None
        rest = " ".join(cells[1:])
        bus_id = _BUS_ID.search(rest)
        with_physical = self.columns[1:2] and self.columns[1] in _PHYSICAL_COLUMNS
        self.chips[int(npu), chip] = ChipRow(
            npu=int(npu),
            chip=chip,
            physical=further[0] if further and with_physical else None,
            name=" ".join(name),
            health=above[1],
            bus_id=bus_id[0] if bus_id else None,
            memory=self._memory(rest),
            aicore=self._aicore(rest),
        )
        return True

    def _memory(self, rest: str) -> tuple[int, int] | None:
        """The HBM's, if there is any; else the chip's other memory."""
        names = [column for column in self.columns if "usage(mb)" in column]
        pairs = {
            name: (int(used), int(total))
            for name, (used, total) in zip(names, _OF_TOTAL.findall(rest), strict=False)
            if int(total) > 0
        }
        return next((pairs[name] for name in sorted(pairs, key=lambda name: "hbm" not in name)), None)

    def _aicore(self, rest: str) -> int | None:
        if not any(column.startswith("aicore") for column in self.columns):
            return None
        words = _OF_TOTAL.sub(" ", _BUS_ID.sub(" ", rest)).split()
        return next((int(word) for word in words if _NUMBER.fullmatch(word)), None)

    def _process(self, cells: list[str]) -> bool:
        ids = cells[0].split()
        if not (len(cells) >= 3 and 1 <= len(ids) <= 2 and all(map(_NUMBER.fullmatch, [*ids, cells[1]]))):
            return False
        memory = cells[3] if len(cells) > 3 else ""
        self.processes.append(
            ProcessRow(
                npu=int(ids[0]),
                chip=int(ids[1]) if len(ids) > 1 else 0,
                pid=int(cells[1]),
                name=cells[2],
                memory=int(memory) if _NUMBER.fullmatch(memory) else None,
            )
        )
        return True
