"""For which SoC a kernel is checked when the backend does not say."""

# Arguments of kernels have no Python types.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

from __future__ import annotations

from types import SimpleNamespace

import pytest
import triton
from triton._C.libtriton import ir
from triton.backends.ascend import compiler as stock
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource
from triton.runtime.driver import LazyProxy, driver

import triton_dist.language as dl


@triton.jit
def add_to_64_bits(word):
    dl.notify(word, 0, sig_op="add")


def compile_it() -> None:
    backend = stock.AscendBackend(GPUTarget("npu", "any", 0))
    context = ir.context()
    ir.load_dialects(context)
    source = ASTSource(add_to_64_bits, {"word": "*i64"}, {}, None)
    source.make_ir(backend.parse_options({}), backend.get_codegen_implementation(), backend.get_module_map(), context)


@pytest.fixture
def sleeping_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """No driver has been used yet, and using it fails, as on a machine without an NPU."""

    def refuse():
        raise AssertionError("the driver was woken up")

    sleeping = LazyProxy(refuse)
    monkeypatch.setattr(driver, "default", sleeping)
    monkeypatch.setattr(driver, "active", sleeping)


@pytest.mark.usefixtures("sleeping_driver")
def test_without_a_driver_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DIST_SIM_SOC", "Ascend910_9392")
    monkeypatch.delenv("TRITON_ASCEND_ARCH", raising=False)
    with pytest.raises(triton.CompilationError, match="Ascend910_9392"):
        compile_it()
    monkeypatch.setenv("TRITON_ASCEND_ARCH", "Ascend950PR_9589")
    compile_it()


def test_the_active_driver_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_ASCEND_ARCH", "Ascend910B1")
    device = SimpleNamespace(get_current_target=lambda: GPUTarget("npu", "Ascend950PR_9589", 0))
    monkeypatch.setattr(driver, "active", device)
    compile_it()
    device.get_current_target = lambda: GPUTarget("npu", "Ascend910B4", 0)
    with pytest.raises(triton.CompilationError, match="Ascend910B4"):
        compile_it()
