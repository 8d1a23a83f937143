"""The open part of the NPU's compiler, where its wheel is installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from open_pipeline import OpenPipeline

from triton_dist import env


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenPipeline:
    package = importlib.util.find_spec("ascendnpuir")
    if package is None or not package.submodule_search_locations:
        pytest.skip("the wheel ascendnpu-ir is not installed: pip install 'triton-dist[compile]'")
    monkeypatch.setenv(env.TRITON_DISABLE_LINE_INFO.name, "false")
    return OpenPipeline(Path(package.submodule_search_locations[0]) / "bin", tmp_path)
