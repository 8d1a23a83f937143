"""How long these tests are repeated by whoever has the time for it (ci/soak.py)."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--busy-runs", type=int, default=1, help="how often a job that works on a busy machine is run (default: 1)"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "busy_run" in metafunc.fixturenames:
        metafunc.parametrize("busy_run", range(metafunc.config.getoption("--busy-runs")))
