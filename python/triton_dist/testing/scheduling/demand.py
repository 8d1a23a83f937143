"""How many NPUs a test will ask for, as far as that is known before it runs."""

from __future__ import annotations

import pytest

UNKNOWN = -1


def npus_wanted(item: pytest.Item) -> int:
    """The world size of a multi-rank test: 0 for other tests, UNKNOWN where only the call will tell."""
    marker = item.get_closest_marker("dist")
    if marker is None and "dist_test" not in getattr(item, "fixturenames", ()):
        return 0
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    for size in (parameters.get("world_size"), marker.kwargs.get("world_size") if marker else None):
        if isinstance(size, int) and size > 0:
            return size
    return UNKNOWN


def is_for_several_nodes(item: pytest.Item) -> bool:
    """Whether the test's marker says that its ranks are on more than one host."""
    marker = item.get_closest_marker("dist")
    nodes = marker.kwargs.get("nodes") if marker else None
    return isinstance(nodes, int) and nodes > 1
