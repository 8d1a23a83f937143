"""Which NPUs a run's tests share: what --npus asks for, of what the host has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triton_dist import env
from triton_dist.devices.visible import VisibleDevicesError, parse_numbers
from triton_dist.runtime import backend
from triton_dist.testing.leases.inventory import Inventory, SimulatedNpus

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
        LeaseError: the lease directory cannot be used.
    """
    if wish.simulated or backend.active() == "sim":
        return _simulated(wish)
    # Here and below, so that runs without real NPUs do not import what finds them.
    from triton_dist.testing.real_choice import choose_real

    return choose_real(wish, allow_busy=allow_busy)


def from_plain(plain: Mapping[str, Any]) -> Choice:
    """The choice that another process has made."""
    if plain["kind"] == "sim":
        npus = SimulatedNpus(plain["npus"], env.TRITON_DIST_SIM_SOC.get())
        return Choice(npus, {}, (), plain)
    from triton_dist.testing.real_choice import real_from_plain

    return real_from_plain(plain)


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
