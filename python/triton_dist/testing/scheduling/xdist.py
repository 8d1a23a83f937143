"""Hands tests out to pytest-xdist's workers in the planned order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdist.scheduler import LoadScheduling  # type: ignore[import-untyped]

# A worker runs a test only when it knows the one after it, or that there is none: xdist's fixtures are torn down by
# that. So each has one more test than it runs, and never more: what a worker has, no other can take.
_TESTS_OF_A_WORKER = 2


class NpuScheduling(LoadScheduling):  # type: ignore[misc]
    """xdist's own scheduling by load, but for the order of the tests, and how many a worker has at once."""

    collection: list[str] | None

    def __init__(self, config: Any, log: Any, order: Callable[[Sequence[str], int], list[int]]) -> None:
        """`order`: the indices of a collection of node ids as they should start, for so many workers."""
        super().__init__(config, log)
        self._order = order

    def schedule(self) -> None:
        if self.collection is None:
            if not self._check_nodes_have_same_collection():
                self.log("**Different tests collected, aborting run**")
                return
            collection = next(iter(self.node2collection.values()))
            self.collection = collection
            self.pending[:] = self._order(collection, len(self.nodes))
            if not collection:
                return
            # Each gets its first test before any gets its second.
            for node in self.nodes:
                self._send_tests(node, 1)
        for node in self.nodes:
            self.check_schedule(node)

    def check_schedule(self, node: Any, duration: float = 0) -> None:
        if node.shutting_down:
            return
        missing = _TESTS_OF_A_WORKER - len(self.node2pending[node])
        if self.pending and missing > 0:
            self._send_tests(node, missing)
        if not self.pending:
            # It may run its last test without waiting for another.
            node.shutdown()
