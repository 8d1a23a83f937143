"""Which threads of a rank keep it from being taken for one that can do nothing."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

import pytest

from triton_dist.runtime.other_threads import OWN_PREFIX, OtherThreads

PATIENCE = 60


@pytest.fixture(autouse=True)
def only_those_of_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = threading.enumerate
    before = {thread for thread in everything() if thread is not threading.current_thread()}
    monkeypatch.setattr(threading, "enumerate", lambda: [thread for thread in everything() if thread not in before])


def start(target: Callable[[], object], name: str = "another") -> threading.Thread:
    thread = threading.Thread(target=target, name=name, daemon=True)
    thread.start()
    return thread


def settles(threads: OtherThreads) -> bool:
    """Whether at some time none of them may act."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if not threads.may_act():
            return True
        time.sleep(0.01)
    return False


def test_a_thread_that_sleeps_until_it_is_woken_may_not_act_until_then() -> None:
    wake: queue.SimpleQueue[None] = queue.SimpleQueue()
    threads = OtherThreads()
    assert not threads.may_act()
    thread = start(lambda: [wake.get(), wake.get()])
    assert threads.may_act()  # the first time that it is seen
    assert settles(threads)
    wake.put(None)  # it goes on, and sleeps again
    assert threads.may_act()
    assert settles(threads)
    wake.put(None)
    thread.join()
    assert not threads.may_act()


def test_a_thread_that_sleeps_for_a_time_may_act() -> None:
    over = threading.Event()
    threads = OtherThreads()
    thread = start(lambda: over.wait(PATIENCE))
    assert all(threads.may_act() for _ in range(5))
    over.set()
    thread.join()


def test_our_own_threads_do_not_count() -> None:
    over = threading.Event()
    threads = OtherThreads()
    thread = start(lambda: over.wait(PATIENCE), OWN_PREFIX + "of-a-test")
    assert not threads.may_act()
    over.set()
    thread.join()
