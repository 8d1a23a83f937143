"""What the doctor looks at a host for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from triton_dist import env, pins
from triton_dist.runtime import backend


@dataclass(frozen=True)
class Situation:
    """What the doctor looks at a host for.

    Attributes:
        backend: where kernels will run.
        ranks: how many ranks a job has at most.
        before_build: nothing has been installed yet, and nothing that the build installs is missed.
        checkout: the checkout that the package runs from; None for a wheel.
        versions: the tables of docker/versions.toml.
    """

    backend: Literal["sim", "ascend"]
    ranks: int
    before_build: bool = False
    checkout: Path | None = field(default_factory=pins.checkout)
    versions: dict[str, Any] = field(default_factory=pins.read)

    @classmethod
    def here(cls, ranks: int | None, *, before_build: bool) -> Situation:
        """That of this process; without a number of ranks, as many as there are simulated NPUs."""
        try:
            chosen = backend.active()
            simulated = env.TRITON_DIST_SIM_NPUS.get()
        except env.EnvironmentVariableError:
            # The check of the variables says so.
            chosen, simulated = "sim", 8
        return cls(chosen, ranks or simulated, before_build)

    @property
    def on_npus(self) -> bool:
        """Whether kernels will run on real NPUs."""
        return self.backend == "ascend"
