"""A kernel's file is the one that ran, also where the same text stands in another file and was compiled first."""

# Kernels' own modules are written by the test.
# mypy: disable-error-code=attr-defined

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

KERNEL = """
import triton
import triton.language as tl

@triton.jit
def divide(out, zero):
    tl.device_assert(zero != 0, "nothing to divide by")
    tl.store(out, 1)
"""


def error_of(folder: Path) -> str:
    folder.mkdir()
    file = folder / "same_text.py"
    file.write_text(KERNEL)
    spec = importlib.util.spec_from_file_location(f"same_text_in_{folder.name}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.divide[(1,)](torch.zeros(1, dtype=torch.int32).npu(), 0, debug=True)
    with pytest.raises(RuntimeError) as caught:
        torch.npu.synchronize()
    return str(caught.value)


def test_errors_name_the_file_that_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_HOME", str(tmp_path))
    monkeypatch.setenv("TRITON_DIST_CACHE_DIR", str(tmp_path / "stages"))
    for name in ("first", "second"):
        assert f"{tmp_path / name / 'same_text.py'}:7" in error_of(tmp_path / name)
