"""Fixtures of the tests of devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from .host import NO_CANN, Host


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host that this process takes for its own; it has no NPU yet."""
    made = Host(tmp_path / "host")
    for name in NO_CANN:
        monkeypatch.delenv(name, raising=False)
    for name, value in made.environ.items():
        monkeypatch.setenv(name, value)
    return made
