"""The SoCs that can be simulated or compiled for: family and core counts.

Core counts are those of CANN's platform configuration. An AI core of the A2 and A3 families is one cube core (AIC)
with two vector cores (AIV).
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Literal

Family = Literal["A2", "A3", "A5"]


@dataclass(frozen=True)
class SoC:
    """One SoC: its name as CANN spells it, its family, and how many AI cores it has."""

    name: str
    family: Family
    aic_cores: int

    @property
    def aiv_cores(self) -> int:
        """Number of vector cores."""
        return 2 * self.aic_cores

    def cores(self, mix_mode: str) -> int:
        """How many programs of a kernel run at once: a vector kernel (`aiv`) takes an AIV, any other an AIC."""
        return self.aiv_cores if mix_mode == "aiv" else self.aic_cores


_SOCS = {
    soc.name: soc
    for soc in (
        SoC("Ascend910B1", "A2", 24),
        SoC("Ascend910B2", "A2", 24),
        SoC("Ascend910B3", "A2", 20),
        SoC("Ascend910B4", "A2", 20),
        SoC("Ascend910_9362", "A3", 20),
        SoC("Ascend910_9372", "A3", 20),
        SoC("Ascend910_9381", "A3", 24),
        SoC("Ascend910_9382", "A3", 24),
        SoC("Ascend910_9391", "A3", 24),
        SoC("Ascend910_9392", "A3", 24),
    )
}


def lookup(name: str) -> SoC:
    """The SoC called `name`. Raises ValueError, with the nearest known name, for one that cannot be simulated."""
    soc = _SOCS.get(name)
    if soc is None:
        near = difflib.get_close_matches(name, _SOCS, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise ValueError(f"SoC {name!r} cannot be simulated{hint}: choose one of {', '.join(_SOCS)}")
    return soc
