"""What the tests of one pytest process share: the pool of NPUs and the zygote."""

from __future__ import annotations

import os

import pytest

from triton_dist.testing.leases.directory import LeaseDirectory
from triton_dist.testing.leases.pool import NpuPool
from triton_dist.testing.options import inventory
from triton_dist.testing.ranks.client import ZygoteClient


class DistSession:
    """Made once in a pytest process, as soon as it has a multi-rank test.

    Attributes:
        pool: the NPUs of the host.
    """

    def __init__(self, config: pytest.Config) -> None:
        worker = getattr(config, "workerinput", {}).get("workerid", "")
        self.pool = NpuPool(inventory(config), LeaseDirectory.of_this_host(), worker)
        self._zygote: ZygoteClient | None = None
        # An xdist worker whose controller was killed is told of it only after its test; ranks should not run so long.
        self._parent = os.getppid() if hasattr(config, "workerinput") else None

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
