"""The kernels of the compiler options page run as they are printed there."""

# Torch gets its `npu` when it is imported.
# mypy: disable-error-code=attr-defined

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

from .symmetric import slot, symmetric_tensors

PAGE = Path(__file__).parents[1] / "data" / "compiler-options-example.txt"


def write_example(folder: Path) -> Path:
    """The page's Python example, as a file."""
    example = PAGE.read_text().partition("\nimport triton\n")[2].partition("\nCompiler Option Description")[0]
    path = folder / "page_example.py"
    path.write_text(f"import triton\n{example}")
    return path


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("page_example", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["page_example"] = module
    spec.loader.exec_module(module)
    return module


def worker(rank: int, world_size: int, path: Path, word: torch.dtype) -> None:
    kernels = load(path)
    with symmetric_tensors(rank, world_size, (world_size * slot(word), word)) as (signals,):
        if rank == 0:
            kernels.wait_kernel[(1,)](signals, world_size)
            assert signals.cpu()[:: slot(word)].tolist() == [1] * (world_size - 1) + [0]
        else:
            kernels.notify_kernel[(1,)](signals[(rank - 1) * slot(word) :], rank)


@pytest.mark.dist
@pytest.mark.parametrize("world_size", [2, 4, 8])
@pytest.mark.parametrize("word", [torch.int32, torch.int64], ids=str)
def test_notify_and_wait_kernels(
    dist_test: Callable[..., None], tmp_path: Path, world_size: int, word: torch.dtype
) -> None:
    dist_test(worker, world_size=world_size, args=(write_example(tmp_path), word))
