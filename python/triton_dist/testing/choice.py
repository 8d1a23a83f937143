"""Which NPUs a run's tests share: what --npus asks for, of what the host has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triton_dist import env
from triton_dist.devices import nodes
from triton_dist.devices.survey import Npu, Survey, survey
from triton_dist.devices.visible import VisibleDevicesError, as_text, parse_numbers
from triton_dist.runtime import backend
from triton_dist.testing.leases.directory import LeaseDirectory
from triton_dist.testing.leases.holdings import Holdings
from triton_dist.testing.leases.inventory import Inventory, RealNpus, SimulatedNpus

_ALLOWED = "it takes auto, COUNT, LIST such as 0,2,5-7, or sim:COUNT, with a COUNT of 1 or more"


@dataclass(frozen=True)
class Wish:
    """What --npus holds.

    Attributes:
        text: as it was given.
        simulated: simulated NPUs are wanted, whatever the host has.
        count: how many; None for all.
        numbers: which ones; None if that does not matter.
    """

    text: str
    simulated: bool = False
    count: int | None = None
    numbers: frozenset[int] | None = None

    @classmethod
    def of(cls, text: str) -> Wish:
        """
        Raises:
            ValueError: --npus may not hold `text`.
        """
        if text == "auto":
            return cls(text)
        if (match := re.fullmatch(r"(sim:)?([0-9]{1,9})", text)) and int(match[2]) > 0:
            return cls(text, simulated=match[1] is not None, count=int(match[2]))
        if re.fullmatch(r"[0-9,-]*[,-][0-9,-]*", text):
            try:
                # A comma at the end tells the NPU of a number from so many NPUs.
                return cls(text, numbers=parse_numbers(text.removesuffix(","), "--npus"))
            except VisibleDevicesError as error:
                raise ValueError(str(error)) from None
        raise ValueError(f"--npus={text} is not allowed: {_ALLOWED}")


@dataclass(frozen=True)
class Choice:
    """The NPUs of a run.

    Attributes:
        inventory: those that its tests share.
        environ: variables for its processes, so that tests which ask how many NPUs there are see these.
        remarks: why others are not among them, one line each.
        plain: the choice in types that every serialiser knows, for pytest-xdist's workers: they must have the same.
    """

    inventory: Inventory
    environ: Mapping[str, object]
    remarks: tuple[str, ...]
    plain: Mapping[str, Any]


def choose(wish: Wish, *, allow_busy: bool) -> Choice:
    """Looks at the host, which takes as long as npu-smi takes to answer where there are real NPUs.

    Raises:
        ValueError: the host does not have what is wished, or an environment variable holds what it may not.
    """
    if wish.simulated or backend.active() == "sim":
        return _simulated(wish)
    # Before and after, since what is on an NPU shows for a moment longer than its lease lasts.
    leased = _leased(nodes.physical_ids())
    found = survey()
    return _real(wish, found, leased | _leased(nodes.physical_ids()), allow_busy=allow_busy)


def from_plain(plain: Mapping[str, Any]) -> Choice:
    """The choice that another process has made."""
    if plain["kind"] == "sim":
        npus = SimulatedNpus(plain["npus"], env.TRITON_DIST_SIM_SOC.get())
        return Choice(npus, {}, (), plain)
    found = Survey.from_plain(plain["survey"])
    return Choice(RealNpus(found, plain["npus"], busy=plain["busy"]), {}, (), plain)


def _simulated(wish: Wish) -> Choice:
    if wish.numbers is None:
        count = env.TRITON_DIST_SIM_NPUS.get() if wish.count is None else wish.count
        numbers = frozenset(range(env.TRITON_DIST_SIM_NPUS.parse(str(count))))
    else:
        numbers = wish.numbers
        env.TRITON_DIST_SIM_NPUS.parse(str(max(numbers) + 1))
    environ: dict[str, object] = {} if wish.text == "auto" else {"TRITON_DIST_SIM_NPUS": len(numbers)}
    if backend.active() != "sim":
        environ["TRITON_DIST_BACKEND"] = "sim"
    inventory = SimulatedNpus(numbers, env.TRITON_DIST_SIM_SOC.get())
    return Choice(inventory, environ, (), {"kind": "sim", "npus": sorted(numbers)})


def _real(wish: Wish, found: Survey, leased: frozenset[int], *, allow_busy: bool) -> Choice:
    if wish.numbers is not None and (missing := sorted(wish.numbers - {npu.physical for npu in found.npus})):
        there = as_text([npu.physical for npu in found.npus]) or "none"
        raise ValueError(f"--npus={wish.text}: NPU {as_text(missing)} is not here; this process sees {there}")
    asked = [npu for npu in found.npus if wish.numbers is None or npu.physical in wish.numbers]
    remarks = list(found.notes)
    usable = []
    for npu in asked:
        why = _why_skipped(npu, leased=npu.physical in leased, allow_busy=allow_busy)
        if why is None:
            usable.append(npu.physical)
        else:
            remarks.append(f"NPU {npu.physical} is skipped: {why}")
    if wish.count is not None and wish.count > len(usable):
        reasons = "; ".join(remarks) or "there are no others"
        raise ValueError(f"--npus={wish.count}: {len(usable)} NPUs can be used ({reasons})")
    chosen = usable if wish.count is None else list(found.links.best_group(usable, wish.count))
    inventory = RealNpus(found, chosen, busy=allow_busy)
    if not found.npus:
        remarks.append(f"no NPU found: TRITON_DIST_BACKEND={env.TRITON_DIST_BACKEND.get()} forbids simulated ones")
    environ: dict[str, object] = {}
    if len(chosen) < len(found.npus) and chosen:
        environ |= inventory.environ(tuple(chosen))
    plain = {"kind": "npu", "npus": chosen, "survey": found.to_plain(), "busy": allow_busy}
    return Choice(inventory, environ, tuple(remarks), plain)


def _leased(numbers: Sequence[int]) -> frozenset[int]:
    """Those that some test of this host holds now: what is busy on them is no stranger."""
    return frozenset(numbers) - Holdings(LeaseDirectory.of_this_host(), RealNpus.kind).free(numbers)


def _why_skipped(npu: Npu, *, leased: bool, allow_busy: bool) -> str | None:
    """Why tests do not get `npu`; None if they may."""
    if npu.defect is not None:
        return npu.defect
    if npu.busy is not None and not leased and not allow_busy:
        return f"busy with {npu.busy} (--allow-busy-npus takes it all the same)"
    return None
