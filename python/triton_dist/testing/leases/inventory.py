"""Which NPUs a pool may lease."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol


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
