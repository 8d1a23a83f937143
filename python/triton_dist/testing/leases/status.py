"""Who has which NPU of the host and who waits, at one moment: for people and programs that look on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from triton_dist import env
from triton_dist.devices.survey import Survey
from triton_dist.testing.leases.directory import LeaseDirectory
from triton_dist.testing.leases.holdings import Holding, Holdings
from triton_dist.testing.leases.inventory import SimulatedNpus
from triton_dist.testing.leases.line import Waiting, in_line
from triton_dist.testing.leases.parties import Party
from triton_dist.testing.leases.quarantine import why_unfit
from triton_dist.testing.leases.real_npus import RealNpus

FREE, LEASED, BUSY, SKIPPED, QUARANTINED = "free", "leased", "busy", "skipped", "quarantined"


@dataclass(frozen=True)
class Row:
    """One NPU.

    Attributes:
        kind: "npu", or "sim" for a simulated one.
        npu: its number, the same for all processes of the host.
        logical: its number in the eyes of CANN here; None where CANN does not count it, and for simulated ones.
        soc, health: in the words of npu-smi.
        state: one of FREE, LEASED, BUSY (with another program), SKIPPED and QUARANTINED.
        detail: what is on it, or why it is not used; empty if there is nothing to say.
        holder: who has it; None unless it is leased.
    """

    kind: str
    npu: int
    logical: int | None
    soc: str
    health: str
    state: str
    detail: str = ""
    holder: Party | None = None


@dataclass(frozen=True)
class Status:
    """All NPUs that this process could have or anybody has simulated, and the waiting line, oldest first."""

    rows: tuple[Row, ...]
    waiting: tuple[Waiting, ...]


def status(found: Survey, directory: LeaseDirectory) -> Status:
    """The state of the NPUs `found`, and of simulated ones: all of them where there are no others, else those in use.

    Raises:
        LeaseError: the lease directory cannot be read.
        EnvironmentVariableError: TRITON_DIST_SIM_NPUS is not a number of NPUs.
    """
    real = _real(found, Holdings(directory, RealNpus.kind))
    simulated = _simulated(Holdings(directory, SimulatedNpus.kind), only_held=bool(real))
    return Status((*real, *simulated), tuple(in_line(directory)))


def _real(found: Survey, holdings: Holdings) -> list[Row]:
    numbers = [npu.physical for npu in found.npus]
    free, last = holdings.free(numbers), holdings.read(numbers)
    rows = []
    for npu in found.npus:
        holding = last.get(npu.physical)
        holder = None
        if npu.physical not in free:
            state, detail, holder = LEASED, _of_held(holding), holding.party if holding else None
        elif npu.defect is not None:
            state, detail = SKIPPED, npu.defect
        elif holding is not None and holding.state != "released":
            state, detail = QUARANTINED, why_unfit(holding)
        elif npu.busy is not None:
            state, detail = BUSY, npu.busy
        else:
            state, detail = FREE, ""
        rows.append(Row(RealNpus.kind, npu.physical, npu.logical, npu.soc, npu.health, state, detail, holder))
    return rows


def _simulated(holdings: Holdings, *, only_held: bool) -> list[Row]:
    everything = range(SimulatedNpus.most)
    free = holdings.free(everything)
    held = [number for number in everything if number not in free]
    shown = held if only_held else sorted({*range(env.TRITON_DIST_SIM_NPUS.get()), *held})
    last = holdings.read(held)
    soc = env.TRITON_DIST_SIM_SOC.get()
    rows = []
    for number in shown:
        row = Row(SimulatedNpus.kind, number, None, soc, "OK", FREE)
        if number in held:
            holding = last.get(number)
            row = replace(row, state=LEASED, detail=_of_held(holding), holder=holding.party if holding else None)
        rows.append(row)
    return rows


def _of_held(holding: Holding | None) -> str:
    """What to say of an NPU that is held, besides by whom."""
    if holding is None:
        return "by a process that has not said who it is"
    return "" if holding.state == "held" else "its test is over, its ranks are still there"
