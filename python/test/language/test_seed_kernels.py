"""The example of the compiler options page compiles as it is printed there."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kernel_compiler import KernelCompiler

PAGE = Path(__file__).parents[1] / "data" / "compiler-options-example.txt"


@pytest.fixture
def seed(tmp_path: Path) -> Iterator[ModuleType]:
    """The page's Python example, imported as a module."""
    example = PAGE.read_text().partition("\nimport triton\n")[2].partition("\nCompiler Option Description")[0]
    path = tmp_path / "page_example.py"
    path.write_text(f"import triton\n{example}")
    spec = importlib.util.spec_from_file_location("page_example", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.mark.parametrize(("word", "width"), [("*i64", 64), ("*i32", 32)])
def test_notify_kernel(compile_kernel: KernelCompiler, seed: ModuleType, word: str, width: int) -> None:
    compiled = compile_kernel(seed.notify_kernel, {"signal_ptr": word, "rank": "i32"})
    sub_vec_id, notify = compiled.externs
    assert (sub_vec_id.symbol, sub_vec_id.operands, sub_vec_id.pure) == ("tdist_sub_vec_id", (0,), True)
    assert notify.symbol == f"tdist_notify_i{width}"
    assert notify.operands[1:] == (0, 1, 1, 1)
    assert f"tdist_notify_i{width}" in compiled.linalg


def test_wait_kernel(compile_kernel: KernelCompiler, seed: ModuleType) -> None:
    compiled = compile_kernel(seed.wait_kernel, {"signal_ptr": "*i64", "world_size": "i32"})
    _, wait, zero = compiled.externs
    assert wait.symbol == "tdist_wait_i64"
    assert wait.operands[2:] == (1, 0, 1)
    assert (zero.symbol, zero.operands) == ("tdist_zero", (wait.result,))
    assert "tdist_wait_i64" in compiled.linalg


def test_wait_kernel_of_a_world_of_one(compile_kernel: KernelCompiler, seed: ModuleType) -> None:
    # An argument equal to 1 is made a constant.
    compiled = compile_kernel(seed.wait_kernel, {"signal_ptr": "*i64"}, world_size=1)
    assert compiled.externs[1].operands[1] == 0
