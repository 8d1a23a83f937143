"""Fixtures of the tests of torch's device npu."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from triton_dist import env
from triton_dist.runtime.torch_device import build

RunPython = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_python() -> RunPython:
    """Runs Python code in a fresh interpreter: `run_python(code, VARIABLE=value)`; None takes a variable out."""

    def run(code: str, **environ: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code],
            env=env.child_environ(**environ),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


@pytest.fixture(scope="session", autouse=True)
def built() -> None:
    """The library is there before an interpreter's standard error is looked at: a build reports on it."""
    build.library()
