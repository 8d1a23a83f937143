"""What the tests of one pytest process share: the pool of NPUs and the zygote."""

from __future__ import annotations

import os
import select

import pytest

from triton_dist import env
from triton_dist.compiler import scratch
from triton_dist.runtime import backend
from triton_dist.testing.leases.directory import LeaseDirectory
from triton_dist.testing.leases.pool import Lease, NpuPool
from triton_dist.testing.options import inventory
from triton_dist.testing.ranks.client import ZygoteClient
from triton_dist.testing.workers import maker

# In an xdist worker: the address of the zygote that serves all workers of the run.
SHARED_ZYGOTE: pytest.StashKey[str] = pytest.StashKey()


class DistSession:
    """Made once in a pytest process, as soon as it has a multi-rank test.

    Attributes:
        pool: the NPUs of the host.
    """

    def __init__(self, config: pytest.Config) -> None:
        worker = getattr(config, "workerinput", {}).get("workerid", "")
        self.pool = NpuPool(inventory(config), LeaseDirectory.of_this_host(), worker)
        self._keeps_ranks = not config.getoption("--no-warm-ranks")
        # What ranks of a killed run were compiling.
        scratch.sweep()
        self._zygote: ZygoteClient | None = None
        self._shared_zygote = config.stash.get(SHARED_ZYGOTE, None)
        # An xdist worker whose controller was killed is told of it only after its test; ranks should not run so long.
        self._parent = os.getppid() if hasattr(config, "workerinput") else None

    @property
    def warm_ranks(self) -> bool:
        """Whether rank processes are kept between tests.

        Not in the strict mode, which a test may switch on for itself: its seed counts from the beginning of a process.
        """
        return self._keeps_ranks and not env.TRITON_DIST_SIM_STRICT.get()

    @property
    def forks_spawned(self) -> bool:
        """Whether ranks that a suite spawns itself are forked, with their imports done; not on real NPUs."""
        return self.warm_ranks and not self.binds_ranks

    @property
    def binds_ranks(self) -> bool:
        """Whether a rank process that has initialised its NPU can have no other any more, as on real ones."""
        return backend.active() != "sim"

    def lease(self, zygote: ZygoteClient, count: int, key: str, test: str) -> Lease:
        """NPUs for a test: of idle ranks that are bound to theirs and fit, else whichever can be had.

        Args:
            zygote: what keeps the ranks.
            key: what these must have been started with; "" for none.

        Raises:
            LeaseError, ZygoteError: there is no lease, or no zygote.
        """
        adopted = zygote.adopt(key, count) if key and self.binds_ranks else None
        if adopted is not None:
            return self.pool.take_over(*adopted, test)
        return self.pool.acquire(count, self.check_parent, test)

    def start_zygote(self) -> ZygoteClient:
        """A zygote that is alive, though not ready perhaps."""
        if self._zygote is not None and not self._zygote.is_alive():
            self._zygote.close()
            self._zygote = None
        if self._zygote is None and self._shared_zygote is not None:
            self._zygote = ZygoteClient.connect(self._shared_zygote)
            # Should it go, this process has its own from then on.
            self._shared_zygote = None
        if self._zygote is None:
            self._zygote = ZygoteClient.start(kept=len(self.pool.inventory.npus))
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
        if self._parent is not None and self._has_lost_controller():
            raise KeyboardInterrupt("the pytest process that started this worker is gone")

    def _has_lost_controller(self) -> bool:
        if maker.controller is None:
            return os.getppid() != self._parent
        poll = select.poll()
        poll.register(maker.controller, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None
