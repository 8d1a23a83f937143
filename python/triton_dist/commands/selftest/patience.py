"""Calls that may take seconds, with somebody told meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
_LOOK = 0.05


def patiently(function: Callable[[], T], while_waiting: Callable[[], None]) -> T:
    """The result of `function`, which is called in another thread; `while_waiting` is called now and then."""
    with ThreadPoolExecutor(1) as executor:
        future = executor.submit(function)
        while not future.done():
            while_waiting()
            wait([future], _LOOK)
        return future.result()
