"""Ascend NPUs that a pool may lease. Apart from the simulated ones, so that who has none imports nothing for them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from triton_dist.devices.fitness import troubles
from triton_dist.devices.survey import UNKNOWN, Survey
from triton_dist.devices.visible import as_text


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
