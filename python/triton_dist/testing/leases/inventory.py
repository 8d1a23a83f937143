"""Which NPUs the host has."""

from __future__ import annotations

from typing import Protocol


class Inventory(Protocol):
    """The NPUs that a pool may lease."""

    @property
    def keys(self) -> tuple[str, ...]:
        """One name an NPU, the same in every process of the host that means this NPU."""

    @property
    def description(self) -> str:
        """The NPUs in a few words, such as "8 simulated (Ascend910B3)"."""

    @property
    def how_to_get_more(self) -> str:
        """What the user can do when a test needs more NPUs than there are."""

    def environ(self, npus: tuple[int, ...]) -> dict[str, str]:
        """The variables under which a rank sees the leased `npus`, and only these, as 0 … n-1."""


class SimulatedNpus:
    """NPUs that exist by being counted.

    Every process of the host means the same NPU by the same number, so that runs which allow themselves different
    counts still share the first ones.
    """

    def __init__(self, count: int, soc: str) -> None:
        self._count = count
        self._soc = soc

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(f"sim-{index}" for index in range(self._count))

    @property
    def description(self) -> str:
        return f"{self._count} simulated ({self._soc})"

    @property
    def how_to_get_more(self) -> str:
        return "raise it with --npus=sim:COUNT or TRITON_DIST_SIM_NPUS"

    def environ(self, npus: tuple[int, ...]) -> dict[str, str]:
        return {"TRITON_DIST_SIM_NPUS": str(len(npus))}
