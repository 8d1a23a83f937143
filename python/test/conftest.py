"""What holds for every test of the project."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    # A shell starts what runs behind an `&` with SIGINT ignored, and all descendants would inherit that: the tests
    # that interrupt a process could not.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
