"""The SoCs that can be simulated or compiled for: family and core counts.

Core counts are those of CANN's platform configuration. An AI core of the A2 and A3 families is one cube core (AIC)
with two vector cores (AIV).
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Literal

from triton_dist import env

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


@dataclass(frozen=True)
class Cores:
    """Numbers of cube cores and of vector cores."""

    aic: int
    aiv: int

    def count_of(self, needed: Cores) -> int:
        """How many times `needed` fits at once."""
        return min(have // need for have, need in ((self.aic, needed.aic), (self.aiv, needed.aiv)) if need)


def of_program(mix_mode: str) -> Cores:
    """What one program of a kernel takes: a vector core, a cube core, or both halves of an AI core."""
    return {"aiv": Cores(0, 1), "aic": Cores(1, 0)}.get(mix_mode, Cores(1, 2))


def simulated() -> Cores:
    """What the simulated NPUs of this process have.

    That of their SoC (TRITON_DIST_SIM_SOC), unless TRITON_DIST_SIM_AIC and TRITON_DIST_SIM_AIV say otherwise; with
    the first alone, each cube core has two vector cores.
    """
    model = lookup(env.TRITON_DIST_SIM_SOC.get())
    aic = env.TRITON_DIST_SIM_AIC.get()
    aiv = env.TRITON_DIST_SIM_AIV.get() or (model.aiv_cores if aic is None else 2 * aic)
    return Cores(model.aic_cores if aic is None else aic, aiv)


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
