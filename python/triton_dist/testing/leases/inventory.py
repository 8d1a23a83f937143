"""Which NPUs a pool may lease."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from triton_dist.devices.fitness import troubles
from triton_dist.devices.survey import UNKNOWN, Survey
from triton_dist.devices.visible import as_text


class Inventory(Protocol):
    """The NPUs that a pool may lease."""

    @property
    def kind(self) -> str:
        """ "sim" or "npu": NPUs of different kinds have nothing to do with each other."""

    @property
    def npus(self) -> tuple[int, ...]:
        """Their numbers, ascending: the same in every process of the host, in whichever container, for an NPU."""

    @property
    def description(self) -> str:
        """The NPUs in a few words, such as "8 simulated (Ascend910B3)"."""

    @property
    def how_to_get_more(self) -> str:
        """What the user can do when a test needs more NPUs than there are."""

    def environ(self, npus: tuple[int, ...]) -> dict[str, str]:
        """The variables under which a rank sees the leased `npus`, and only these, as 0 … n-1."""

    def best_group(self, free: Collection[int], count: int) -> tuple[int, ...]:
        """Those `count` of the NPUs `free` that a test should have, ascending."""

    def troubles(self, npus: Sequence[int]) -> dict[int, str | None]:
        """Why each of `npus`, which nobody holds, is not fit for a test yet; None where it is. May take seconds."""

    @property
    def may_be_unfit(self) -> bool:
        """Whether an NPU that nobody holds can still be in a bad state."""


class SimulatedNpus:
    """NPUs that exist by being counted.

    Every process of the host means the same NPU by the same number, so that runs which allow themselves different
    counts still share the first ones.
    """

    kind = "sim"
    most = 1024
    may_be_unfit = False

    def __init__(self, npus: int | Collection[int], soc: str) -> None:
        """`npus`: how many, or which numbers."""
        self.npus = tuple(range(npus)) if isinstance(npus, int) else tuple(sorted(npus))
        self._soc = soc

    @property
    def description(self) -> str:
        return f"{len(self.npus)} simulated ({self._soc})"

    @property
    def how_to_get_more(self) -> str:
        return "raise it with --npus=sim:COUNT or TRITON_DIST_SIM_NPUS"

    def environ(self, npus: tuple[int, ...]) -> dict[str, str]:
        return {"TRITON_DIST_SIM_NPUS": str(len(npus))}

    def best_group(self, free: Collection[int], count: int) -> tuple[int, ...]:
        return tuple(sorted(free)[:count])

    def troubles(self, npus: Sequence[int]) -> dict[int, str | None]:
        return dict.fromkeys(npus)


class RealNpus:
    """Ascend NPUs, by the numbers of their device nodes."""

    kind = "npu"
    may_be_unfit = True

    def __init__(self, found: Survey, npus: Collection[int], *, busy: bool) -> None:
        """
        Args:
            found: the host's NPUs.
            npus: the numbers of those to be used, which all have logical ones.
            busy: other programs may be on them.
        """
        self.npus = tuple(sorted(npus))
        self._found = found
        self._busy = busy
        self._logical = {
            npu.physical: npu.logical for npu in found.npus if npu.physical in self.npus and npu.logical is not None
        }

    @property
    def description(self) -> str:
        if not self.npus:
            return "none"
        socs = sorted({npu.soc for npu in self._found.npus if npu.physical in self.npus} - {UNKNOWN})
        return f"{len(self.npus)} ({', '.join(socs) or 'SoC not known'}): {as_text(self.npus)}"

    @property
    def how_to_get_more(self) -> str:
        return "`python -m triton_dist npus` shows all and why some are skipped; --npus=sim:COUNT simulates"

    def environ(self, npus: tuple[int, ...]) -> dict[str, str]:
        # Ascending: CANN takes no other order.
        return {"ASCEND_RT_VISIBLE_DEVICES": ",".join(map(str, sorted(self._logical[npu] for npu in npus)))}

    def best_group(self, free: Collection[int], count: int) -> tuple[int, ...]:
        return self._found.links.best_group(free, count)

    def troubles(self, npus: Sequence[int]) -> dict[int, str | None]:
        return troubles(npus, busy=self._busy)
