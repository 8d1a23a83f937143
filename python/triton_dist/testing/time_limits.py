"""pytest-timeout beside our own time-out: both count from the moment when the test has its NPUs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def suspended(item: pytest.Item) -> Iterator[None]:
    """While entered, pytest-timeout does not count; afterwards it begins anew. Without it, nothing happens.

    A test that waits for NPUs does nothing yet, and ranks that run are ended by us, who can say what they did.
    """
    settings = _settings(item)
    if settings is None:
        yield
        return
    item.config.hook.pytest_timeout_cancel_timer(item=item)
    try:
        yield
    finally:
        item.config.hook.pytest_timeout_set_timer(item=item, settings=settings)


def limited(item: pytest.Item, seconds: float, *, chosen: bool) -> float:
    """How long ranks may take, in seconds, with what pytest-timeout allows the test.

    Args:
        seconds: what our own time-out says.
        chosen: whether the test has chosen that, by its marker `dist`; then a marker `timeout` cannot lengthen it.
    """
    settings = _settings(item)
    if settings is None:
        return seconds
    theirs = float(settings.timeout)
    if item.get_closest_marker("timeout") is not None and not chosen:
        return theirs
    return min(seconds, theirs)


def _settings(item: pytest.Item) -> Any:
    """pytest-timeout's settings for `item`; None if it sets no limit to it."""
    if not item.config.pluginmanager.hasplugin("timeout"):
        return None
    import pytest_timeout  # type: ignore[import-untyped]

    # A debugger, or the absence of a limit, switches it off.
    settings = pytest_timeout._get_item_settings(item)
    return settings if settings.timeout and settings.timeout > 0 else None
