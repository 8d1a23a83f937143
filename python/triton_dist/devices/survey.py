"""The NPUs that this process may use, put together from device nodes, `npu-smi` and the environment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from triton_dist import env
from triton_dist.devices import nodes, npu_smi, visible
from triton_dist.devices.info import ChipRow, InfoTable, ProcessRow, parse_info
from triton_dist.devices.linked import Links, weight
from triton_dist.devices.mapping import MappedChip, parse_mapping
from triton_dist.devices.npu_smi import NpuSmiError
from triton_dist.devices.topology import Topology, parse_topology

UNKNOWN = "unknown"
_OK = "OK"
# What the driver itself has of an idle NPU's memory: some 3 GB of 64 on A2 and A3.
_IDLE_MEMORY_MB = 4096
_IDLE_SHARE = 1 / 16
_LINES_SHOWN = 3


@dataclass(frozen=True)
class Npu:
    """One NPU.

    Attributes:
        physical: the number of its device node, the same in every container of the host.
        logical: its number in CANN's eyes, among the NPUs of this container; None if CANN does not count it.
        soc: its SoC as far as npu-smi names it, such as Ascend910B3; "unknown" where nobody could be asked.
        health: npu-smi's word for it, OK where all is well; "unknown" where nobody could be asked.
        defect: why no test can use it, in a few words; None if tests can.
        busy: what runs on it, in a few words; None if nothing does.
    """

    physical: int
    logical: int | None
    soc: str
    health: str
    defect: str | None
    busy: str | None


@dataclass(frozen=True)
class Survey:
    """What was found at one moment.

    Attributes:
        npus: those that this process may see, by physical number.
        links: how they are linked, by physical number.
        notes: what the user should know about how they were found, one line each.
    """

    npus: tuple[Npu, ...] = ()
    links: Links = field(default_factory=Links)
    notes: tuple[str, ...] = ()

    def npu(self, physical: int) -> Npu | None:
        return next((npu for npu in self.npus if npu.physical == physical), None)

    def to_plain(self) -> dict[str, Any]:
        """The survey in types that every serialiser knows."""
        return {
            "npus": [asdict(npu) for npu in self.npus],
            "links": [[one, other, value] for (one, other), value in self.links.weights.items()],
            "notes": list(self.notes),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Survey:
        return cls(
            tuple(Npu(**npu) for npu in plain["npus"]),
            Links({(one, other): value for one, other, value in plain["links"]}),
            tuple(plain["notes"]),
        )


def survey() -> Survey:
    """Looks for NPUs; takes as long as npu-smi does, and TRITON_DIST_NPU_SMI_TIMEOUT at most.

    Raises:
        VisibleDevicesError: ASCEND_VISIBLE_DEVICES holds what it may not.
    """
    present = nodes.physical_ids()
    if not present:
        return Survey()
    info, mapping, topology = npu_smi.ask_all(("info",), ("info", "-m"), ("info", "-t", "topo"))
    told = _Told(present, info, mapping, topology)
    counted = visible.in_container(told.in_drivers_order())
    chosen, note = visible.in_process(len(counted))
    logical = {counted[index]: index for index in chosen}
    # What CANN does not count has no logical number to be chosen by; it is shown with the reason.
    unlisted = () if env.ASCEND_RT_VISIBLE_DEVICES.is_set() else visible.in_container(told.not_listed())
    shown = sorted({*logical, *unlisted})
    return Survey(
        npus=tuple(told.npu(physical, logical.get(physical)) for physical in shown),
        links=told.links(shown),
        notes=(*told.notes, *([note] if note else [])),
    )


class _Told:
    """What npu-smi told of the NPUs whose device nodes are `present`."""

    def __init__(
        self,
        present: tuple[int, ...],
        info: str | NpuSmiError,
        mapping: str | NpuSmiError,
        topology: str | NpuSmiError,
    ) -> None:
        self.notes: list[str] = []
        self._present = present
        self._asked = False
        self._chips: dict[int, ChipRow] = {}
        self._processes: dict[int, list[ProcessRow]] = {}
        self._mapped: dict[int, MappedChip] = {}
        self._topology: Topology | None = None
        if isinstance(info, NpuSmiError):
            self.notes.append(f"{info}: health and load of the NPUs are not known, all device nodes are used")
            return
        table = parse_info(info)
        self._report("info", table.not_understood)
        if not table.chips:
            self.notes.append("`npu-smi info` shows no NPU: health and load are not known, all device nodes are used")
            return
        self._asked = True
        mapped = self._read_mapping(mapping)
        self._take_chips(table, mapped)
        if not isinstance(topology, NpuSmiError):
            self._topology = parse_topology(topology)

    def _read_mapping(self, mapping: str | NpuSmiError) -> dict[tuple[int, int], MappedChip]:
        # Releases without -m exist; then the order is that of the physical numbers.
        if isinstance(mapping, NpuSmiError):
            return {}
        parsed = parse_mapping(mapping)
        return {(chip.npu, chip.chip): chip for chip in parsed.chips if chip.logical is not None}

    def _take_chips(self, table: InfoTable, mapped: dict[tuple[int, int], MappedChip]) -> None:
        by_place = _physical_numbers(table.chips, mapped, self._present)
        for chip in table.chips:
            place = (chip.npu, chip.chip)
            physical = by_place.get(place)
            if physical is None:
                self.notes.append(
                    f"NPU {chip.npu} chip {chip.chip} of `npu-smi info` is not used: its number among the device nodes "
                    f"davinci{visible.as_text(self._present)} is not known"
                )
                continue
            # An NPU without a node is another container's.
            if physical in self._present:
                self._chips[physical] = chip
                if place in mapped:
                    self._mapped[physical] = mapped[place]
        for process in table.processes:
            physical = by_place.get((process.npu, process.chip))
            if physical is not None:
                self._processes.setdefault(physical, []).append(process)

    def _report(self, question: str, lines: Iterable[str]) -> None:
        lines = list(lines)
        for line in lines[:_LINES_SHOWN]:
            self.notes.append(f"`npu-smi {question}` printed a line that is not understood: {line.strip()!r:.120}")
        if len(lines) > _LINES_SHOWN:
            self.notes.append(f"`npu-smi {question}` printed {len(lines) - _LINES_SHOWN} more such lines")

    def in_drivers_order(self) -> tuple[int, ...]:
        """The NPUs that CANN counts, in the order of its logical numbers."""
        if not self._asked:
            return self._present
        logical = {physical: chip.logical for physical, chip in self._mapped.items() if chip.logical is not None}
        if len(logical) == len(self._chips) == len(set(logical.values())):
            return tuple(sorted(self._chips, key=logical.__getitem__))
        return tuple(sorted(self._chips))

    def not_listed(self) -> tuple[int, ...]:
        """Nodes of NPUs that npu-smi, though it answered, did not show."""
        return tuple(number for number in self._present if self._asked and number not in self._chips)

    def npu(self, physical: int, logical: int | None) -> Npu:
        chip = self._chips.get(physical)
        return Npu(
            physical=physical,
            logical=logical,
            soc=self._soc(physical),
            health=chip.health if chip else UNKNOWN,
            defect=self._defect(physical, chip),
            busy=self._busy(physical, chip),
        )

    def _soc(self, physical: int) -> str:
        chip, mapped = self._chips.get(physical), self._mapped.get(physical)
        name = mapped.name if mapped else chip.name if chip else ""
        name = name.replace(" ", "")
        if not name:
            return UNKNOWN
        return name if name.lower().startswith("ascend") else f"Ascend{name}"

    def _defect(self, physical: int, chip: ChipRow | None) -> str | None:
        if not nodes.can_be_opened(physical):
            return f"{nodes.path(physical)} may not be opened by this user"
        if chip is None:
            return "npu-smi does not list it" if self._asked else None
        return None if chip.health.upper() == _OK else f"its health is {chip.health}"

    def _busy(self, physical: int, chip: ChipRow | None) -> str | None:
        """Who or what is on the NPU; in a container, npu-smi does not show processes of others, only their load."""
        if processes := self._processes.get(physical):
            return "; ".join(
                f"{row.name} {row.pid}" + (f", {_size(row.memory)}" if row.memory is not None else "")
                for row in processes
            )
        if chip is None:
            return None
        if chip.memory is not None:
            used, total = chip.memory
            if used > max(_IDLE_MEMORY_MB, total * _IDLE_SHARE):
                return f"a process that npu-smi does not show, {_size(used)}"
        return f"a process that npu-smi does not show, AI cores at {chip.aicore} %" if chip.aicore else None

    def links(self, shown: list[int]) -> Links:
        pairs = [(one, other) for one in shown for other in shown if one < other]
        return Links({pair: value for pair in pairs if (value := self._weight(*pair))})

    def _weight(self, one: int, other: int) -> int:
        first, second = self._chips.get(one), self._chips.get(other)
        same_card = first is not None and second is not None and first.npu == second.npu
        link, same_numa_node = None, False
        if self._topology is not None:
            rows = self._row(one), self._row(other)
            link = self._topology.links.get(rows)  # type: ignore[arg-type]
            cores = [self._topology.cores.get(row) for row in rows if row is not None]
            same_numa_node = len(cores) == 2 and cores[0] is not None and cores[0] == cores[1]
        return weight(link, same_card=same_card, same_numa_node=same_numa_node)

    def _row(self, physical: int) -> int | None:
        """The row of the topology's matrix for an NPU."""
        assert self._topology is not None
        rows = {row for pair in self._topology.links for row in pair}
        # Some releases call the rows NPU<number>, but have one for each of the chips that share an NPU id.
        if self._topology.by == "phy" or len(rows) > len({chip.npu for chip in self._chips.values()}):
            return physical
        chip = self._chips.get(physical)
        return chip.npu if chip else None


def _physical_numbers(
    chips: tuple[ChipRow, ...], mapped: dict[tuple[int, int], MappedChip], present: tuple[int, ...]
) -> dict[tuple[int, int], int]:
    """(npu, chip) -> number of the device node, as far as it can be known."""
    numbers = {}
    for chip in chips:
        place = (chip.npu, chip.chip)
        told = chip.physical if chip.physical is not None else mapped[place].physical if place in mapped else None
        if told is not None:
            numbers[place] = told
    if numbers:
        return numbers
    places = sorted((chip.npu, chip.chip) for chip in chips)
    if all(chip == 0 for _, chip in places) and {npu for npu, _ in places} & set(present):
        # One chip an id: then the id is the number. A container may have nodes for some of them only.
        return {place: place[0] for place in places}
    if len(places) == len(present):
        # Several chips an id, and no word of the physical numbers: both count in the same order.
        return dict(zip(places, present, strict=True))
    return {}


def _size(megabytes: int) -> str:
    return f"{megabytes / 1000:.0f} GB" if megabytes >= 1000 else f"{megabytes} MB"
