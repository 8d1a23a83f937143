"""What the process that controls xdist's workers does for them: it plans their tests, and has one zygote for all."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from triton_dist.testing.options import inventory
from triton_dist.testing.ranks.client import ZygoteError, ZygoteProcess
from triton_dist.testing.ranks.wire import Listener
from triton_dist.testing.scheduling.demand import UNKNOWN
from triton_dist.testing.scheduling.history import History
from triton_dist.testing.scheduling.link import DemandListener
from triton_dist.testing.scheduling.order import Planned, planned_order

if TYPE_CHECKING:
    from triton_dist.testing.workers.gateways import ForkedWorkers

# In a worker's `workerinput`: where to tell what its tests want, and where the zygote will be.
DEMAND = "triton_dist_demand"
ZYGOTE = "triton_dist_zygote"


class Controller:
    """A plugin of the controlling process."""

    def __init__(self, config: pytest.Config, history: History) -> None:
        self._config = config
        self._history = history
        self._npus = len(inventory(config).npus)
        self._demand = DemandListener()
        # Its address is told before it is there: who connects early waits.
        self._listener = Listener()
        self._zygote: ZygoteProcess | None = None
        self._workers: ForkedWorkers | None = None
        self._wanted: dict[str, int] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        if not self._config.getoption("collectonly") and self._is_likely_to_have_ranks():
            # Its imports go on while the workers collect; or workers are forked when it has them.
            from triton_dist.testing.workers import gateways

            self._start_zygote(workers=gateways.wanted(self._config))
            if self._zygote is not None and self._zygote.workers is not None:
                self._workers = gateways.ForkedWorkers(self._zygote, self._zygote.workers)
                self._workers.install()

    def _is_likely_to_have_ranks(self) -> bool:
        root = self._config.rootpath
        files = {root / nodeid.partition("::")[0] for nodeid in self._history.multirank()}
        chosen = [
            Path(self._config.invocation_params.dir, arg.partition("::")[0]).resolve() for arg in self._config.args
        ]
        return any(path == file or path in file.parents for path in chosen for file in files)

    def _start_zygote(self, *, workers: bool = False) -> None:
        # Workers have one of their own, or say why not, if it does not start.
        if self._zygote is None:
            with suppress(ZygoteError):
                self._zygote = ZygoteProcess(self._npus, self._listener, workers=workers)

    # ------------------------------------------------------------------------------ xdist's hooks

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[DEMAND] = self._demand.address
        node.workerinput[ZYGOTE] = self._listener.address

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        self._wanted.update(self._demand.receive())
        if self._wanted:
            self._start_zygote()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        if config.getvalue("dist") != "load" or _chosen_by_user(config):
            return None
        from triton_dist.testing.scheduling.xdist import NpuScheduling

        return NpuScheduling(config, log, self._order)

    def _order(self, nodeids: Sequence[str], workers: int) -> list[int]:
        if not self._wanted:
            # Nothing to keep busy.
            return list(range(len(nodeids)))
        tests = []
        for index, nodeid in enumerate(nodeids):
            past = self._history[nodeid]
            npus = self._wanted.get(nodeid, 0)
            if npus == UNKNOWN:
                npus = past.npus if past else 1
            tests.append(Planned(index, npus, past.seconds if past else None))
        return planned_order(tests, self._npus, workers)

    def pytest_unconfigure(self) -> None:
        self._demand.close()
        self._listener.close()
        if self._workers is not None:
            self._workers.uninstall()
        if self._zygote is not None:
            self._zygote.close()


def _chosen_by_user(config: pytest.Config) -> bool:
    """Whether somebody has named a --dist mode; -n alone does not."""
    given = [*config.invocation_params.args, *config.getini("addopts"), *shlex.split(_addopts_of_environment())]
    return any(str(arg) == "--dist" or str(arg).startswith("--dist=") for arg in given)


def _addopts_of_environment() -> str:
    from triton_dist import env

    return env.child_environ().get("PYTEST_ADDOPTS", "")
