"""What the tests of one pytest process share: the pool of NPUs and the zygote."""

from __future__ import annotations

import os
from functools import cached_property

import pytest

from triton_dist import env
from triton_dist.testing.leases import LeaseDirectory, NpuPool, SimulatedNpus
from triton_dist.testing.options import npu_count
from triton_dist.testing.ranks.client import ZygoteClient

KEY = pytest.StashKey["Session"]()


class Session:
    """Made once per pytest process, as soon as there is a multi-rank test."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._zygote: ZygoteClient | None = None
        # An xdist worker whose controller was killed is told of it only after its test; ranks should not run so long.
        self._parent = os.getppid() if hasattr(config, "workerinput") else None

    @classmethod
    def of(cls, config: pytest.Config) -> Session:
        if KEY not in config.stash:
            config.stash[KEY] = cls(config)
        return config.stash[KEY]

    @cached_property
    def pool(self) -> NpuPool:
        return NpuPool(
            SimulatedNpus(npu_count(self._config), env.TRITON_DIST_SIM_SOC.get()), LeaseDirectory.of_this_host()
        )

    def start_zygote(self) -> ZygoteClient:
        """A zygote that is alive, though not ready perhaps."""
        if self._zygote is not None and not self._zygote.is_alive():
            self._zygote.close()
            self._zygote = None
        if self._zygote is None:
            self._zygote = ZygoteClient()
        return self._zygote

    def ready_zygote(self) -> ZygoteClient:
        """A zygote that can fork ranks.

        Raises:
            ZygoteError: it does not start.
        """
        zygote = self.start_zygote()
        zygote.wait_until_ready(self.check_parent)
        return zygote

    def check_parent(self) -> None:
        """Raises KeyboardInterrupt in an xdist worker that has lost its controller."""
        if self._parent is not None and os.getppid() != self._parent:
            raise KeyboardInterrupt("the pytest process that started this worker is gone")

    def close(self) -> None:
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None
