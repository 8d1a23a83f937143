"""pytest's terminal, lent to a rank that stops in a debugger."""

from __future__ import annotations

from typing import Any

import pytest

from triton_dist.testing.ranks.record import RankRecord


def has_one(config: pytest.Config) -> bool:
    """Whether this process has the user's terminal: an xdist worker has none."""
    return not hasattr(config, "workerinput")


def debugged_rank(config: pytest.Config) -> int | None:
    """The rank whose failure opens the debugger; None if none does."""
    return int(config.getoption("--pdb-rank")) if config.getoption("usepdb") and has_one(config) else None


def of(config: pytest.Config) -> LentTerminal | None:
    return LentTerminal(config) if has_one(config) else None


class LentTerminal:
    """pytest reads and writes nothing while a rank has it."""

    def __init__(self, config: pytest.Config) -> None:
        self._capture: Any = config.pluginmanager.getplugin("capturemanager")
        self._reporter: Any = config.pluginmanager.getplugin("terminalreporter")
        self._lent = False

    def lend(self, record: RankRecord, world_size: int) -> tuple[int, int]:
        if not self._lent:
            self._lent = True
            if self._capture is not None:
                self._capture.suspend(in_=True)
        if self._reporter is not None:
            self._reporter.ensure_newline()
            self._reporter.write_line(f">>> rank {record.rank} of {world_size} stopped: {record.stopped}")
            self._reporter.flush()
        return (0, 1)

    def take_back(self) -> None:
        if self._lent:
            self._lent = False
            if self._capture is not None:
                self._capture.resume()
