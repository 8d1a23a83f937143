"""What earlier runs have learned of each test: NPUs and seconds, in pytest's cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

_KEY = "triton-dist/tests"
# Tests that no run has seen for long are forgotten when there are more than this.
_MOST_TESTS = 50_000


@dataclass(frozen=True)
class Past:
    """What a test took the last time it passed.

    Attributes:
        npus: the most that it had at once.
        seconds: how long it took; without waiting for NPUs.
    """

    npus: int
    seconds: float


class History:
    """The past of tests, by node id; empty where the run has no cache."""

    def __init__(self, config: pytest.Config) -> None:
        self._cache = getattr(config, "cache", None)
        self._tests: dict[str, Past] = {}
        stored: Any = self._cache.get(_KEY, {}) if self._cache is not None else {}
        for nodeid, entry in stored.items() if isinstance(stored, dict) else ():
            if isinstance(entry, list) and len(entry) == 2:
                self._tests[nodeid] = Past(int(entry[0]), float(entry[1]))

    def __getitem__(self, nodeid: str) -> Past | None:
        return self._tests.get(nodeid)

    def multirank(self) -> list[str]:
        """The node ids of multi-rank tests."""
        return [nodeid for nodeid, past in self._tests.items() if past.npus]

    def learn(self, tests: Mapping[str, Past]) -> None:
        """Keeps what this run has seen."""
        if self._cache is None or not tests:
            return
        for nodeid, past in tests.items():
            self._tests.pop(nodeid, None)
            self._tests[nodeid] = past
        newest = list(self._tests.items())[-_MOST_TESTS:]
        self._cache.set(_KEY, {nodeid: [past.npus, round(past.seconds, 3)] for nodeid, past in newest})
