"""Compiler options: described as triton-ascend has them, checked where they are given, and acting where they should."""

# Arguments of kernels have no Python types, and torch gets its `npu` when it is imported.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given
from hypothesis import strategies as st
from triton.backends.ascend.compiler import NPUOptions

from triton_dist.compiler.options import FLAG, INTEGER, OPTIONS, TEXT, nearest


@pytest.fixture(autouse=True)
def _dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compiled with debug is dumped."""
    monkeypatch.setenv("TRITON_DUMP_DIR", str(tmp_path))


# A value other than the default that the option takes.
OTHER_VALUE: dict[str, Any] = {
    "allowed_dot_input_precisions": ("ieee",),
    "cluster_dims": (1, 1, 2),
    "compile_mode": "unstructured_in_simt",
    "extern_libs": {},
    "kernel_name": "other",
    "limit_auto_multi_buffer_of_local_buffer": "no-l0c",
    "parallel_mode": "simt",
    "stream": 0,
}
# Those with which no kernel can be compiled for simulated NPUs.
REFUSED = {"force_simt_only"}


def other_value(name: str) -> Any:
    option = OPTIONS[name]
    if name in OTHER_VALUE:
        return OTHER_VALUE[name]
    return not option.default if option.kind == FLAG else (option.default or 0) + 2


@triton.jit
def add(x, y, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) + tl.load(y + i))


def launch(kernel: Any, *arguments: Any, **options: Any) -> None:
    """Launches one program and waits for its end: errors show there."""
    kernel[(1,)](*arguments, **options)
    torch.npu.synchronize()


def run_add(**options: Any) -> None:
    x, y = torch.randn(64), torch.randn(64)
    out = torch.zeros(64, device="npu")
    add[(1,)](x.npu(), y.npu(), out, BLOCK=64, **options)
    torch.testing.assert_close(out.cpu(), x + y, rtol=0, atol=0)


def test_every_option_of_triton_ascend_is_described_with_its_default() -> None:
    fields = {field.name: field.default for field in dataclasses.fields(NPUOptions)}
    assert {name: option.default for name, option in OPTIONS.items()} == fields


def test_descriptions_are_complete() -> None:
    for name, option in OPTIONS.items():
        assert option.name == name
        assert option.meaning.endswith(".")
        assert option.effect.startswith("acts") or re.match(r"no effect: \w", option.effect)
        assert option.acts == option.effect.startswith("acts")
        option.check(option.default)


@pytest.mark.parametrize("name", sorted(OPTIONS.keys() - REFUSED))
def test_every_option_is_accepted_at_a_launch(name: str) -> None:
    run_add(**{name: other_value(name)})


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_an_option_that_cannot_be_simulated_says_so(name: str) -> None:
    with pytest.raises(Exception, match="cannot be simulated"):
        run_add(**{name: other_value(name)})


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_every_option_is_accepted_in_a_config_and_kept(name: str) -> None:
    assert triton.Config({"BLOCK": 64}, **{name: other_value(name)}).all_kwargs()[name] == other_value(name)


def test_the_options_of_a_config_reach_the_kernel() -> None:
    set_by_the_compiler = {"kernel_name", "parallel_mode"}
    options = {name: other_value(name) for name in OPTIONS.keys() - REFUSED - set_by_the_compiler}
    tuned = triton.autotune([triton.Config({"BLOCK": 64}, **options)], key=[])(add)
    out = torch.zeros(64, device="npu")
    kernel = tuned[(1,)](torch.ones(64).npu(), torch.ones(64).npu(), out)
    assert out.cpu().tolist() == [2] * 64
    assert {name: tuple_of(getattr(kernel.metadata, name)) for name in options} == options


def tuple_of(value: Any) -> Any:
    """Metadata has been through JSON, which has no tuples."""
    return tuple(value) if isinstance(value, list) else value


def test_a_launch_takes_its_place_in_the_stream_that_it_names() -> None:
    # The first launch keeps the stream busy: a launch elsewhere would not wait for it.
    stream = torch.npu.Stream()
    x = torch.zeros(1 << 16, device="npu")
    out = torch.zeros(1 << 16, device="npu")
    torch.npu.synchronize()
    for number in (stream.npu_stream, torch.npu.default_stream().npu_stream):
        add[(1,)](x, x + 1, out, BLOCK=1 << 16, stream=number)
        add[(1,)](out, x + 1, out, BLOCK=1 << 16, stream=number)
        torch.npu.synchronize()
        assert out.cpu().unique().tolist() == [2]


def test_an_unknown_option_at_a_launch_names_the_nearest() -> None:
    with pytest.raises(TypeError, match=r"kernel add .* multibufer \(given as True\).* multibuffer$"):
        run_add(multibufer=True)


def test_a_misspelt_argument_at_a_launch_names_the_nearest() -> None:
    x = torch.zeros(64, device="npu")
    with pytest.raises(TypeError, match=r"BLOK \(given as 3\).* BLOCK$"):
        add[(1,)](x, x, x, BLOCK=64, BLOK=3)


@pytest.mark.parametrize("positional", [False, True])
def test_an_unknown_option_in_a_config_names_the_nearest(positional: bool) -> None:
    arguments: tuple[Any, ...] = ({}, 4) if positional else ({},)
    with pytest.raises(TypeError, match=r"triton\.Config .* unit_flg \(given as False\).* unit_flag$"):
        triton.Config(*arguments, unit_flg=False)


def test_an_unknown_option_of_jit_names_the_nearest() -> None:
    kernel = triton.jit(add.fn, options={"sync_slover": True})
    x = torch.zeros(64, device="npu")
    with pytest.raises(TypeError, match=r"sync_slover \(given as True\).* sync_solver$"):
        kernel[(1,)](x, x, x, BLOCK=64)


BAD = [
    ("multibuffer", 1, TypeError, r"multibuffer is 1 \(int\): it takes True or False"),
    ("num_warps", "4", TypeError, r"num_warps is '4' \(str\): it takes an integer of 1 or more"),
    ("num_warps", 0, ValueError, "num_warps is 0: it takes an integer of 1 or more"),
    ("num_stages", True, TypeError, r"num_stages is True \(bool\)"),
    ("unit_flag", "on", TypeError, r"unit_flag is 'on' \(str\): it takes True, False or None"),
    ("tile_mix_cube_loop", 2.0, TypeError, r"tile_mix_cube_loop is 2.0 \(float\)"),
    ("compile_mode", "simdt", ValueError, "compile_mode is 'simdt': it takes 'simd', 'unstructured_in_simt', "),
    ("limit_auto_multi_buffer_of_local_buffer", "l0c", ValueError, "it takes 'no-limit', 'no-l0c' or None"),
    ("allowed_dot_input_precisions", ("tf32",), ValueError, "it takes a tuple of 'ieee', 'hf32'"),
    ("allowed_dot_input_precisions", "ieee", TypeError, "it takes a tuple of 'ieee', 'hf32'"),
    ("cluster_dims", (1, 0, 1), ValueError, "it takes a tuple of integers of 1 or more"),
]


@pytest.mark.parametrize(("name", "value", "error", "text"), BAD)
def test_a_bad_value_is_refused_at_a_launch_and_in_a_config(
    name: str, value: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        run_add(**{name: value})
    with pytest.raises(error, match=text):
        triton.Config({}, **{name: value})


@given(st.sampled_from(sorted(OPTIONS)), st.one_of(st.integers(), st.booleans(), st.text(), st.floats(), st.none()))
def test_a_value_is_accepted_or_refused_by_name(name: str, value: Any) -> None:
    option = OPTIONS[name]
    if value is None:
        right = option.default is None
    else:
        right = type(value) is {FLAG: bool, INTEGER: int, TEXT: str}.get(option.kind)
    allowed = not option.choices or value in option.choices
    allowed &= option.least is None or not right or value is None or value >= option.least
    if right and (allowed or value is None):
        option.check(value)
    else:
        with pytest.raises(ValueError if right else TypeError, match=f"^compiler option {name} is "):
            option.check(value)


@given(st.sampled_from(sorted(OPTIONS)), st.data())
def test_the_nearest_name_of_a_name_with_a_letter_too_much_is_that_name(name: str, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(name)))
    assert nearest(f"{name[:position]}q{name[position:]}") == name


# ----------------------------------------------------------------------------------- those that act


@triton.jit
def dot(a, b, out, PRECISION: tl.constexpr):
    i = tl.arange(0, 16)
    at = i[:, None] * 16 + i[None, :]
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at), input_precision=PRECISION))


def to_hf32(x: torch.Tensor) -> torch.Tensor:
    """Rounded to 11 bits of mantissa, to even."""
    mantissa, exponent = np.frexp(x.numpy().astype(np.float64))
    return torch.from_numpy(np.ldexp(np.rint(mantissa * 2**12) / 2**12, exponent).astype(np.float32))


def test_hf32_rounds_the_operands_of_a_dot() -> None:
    torch.manual_seed(0)
    a, b = torch.randn(16, 16), torch.randn(16, 16)
    a[0, 0] = 1 + 2**-12  # half way: to even, down
    a[0, 1] = 1 + 3 * 2**-12  # half way: to even, up
    results = {}
    for precision in ("ieee", "hf32"):
        out = torch.zeros(16, 16, device="npu")
        dot[(1,)](a.npu(), b.npu(), out, PRECISION=precision)
        results[precision] = out.cpu()
    torch.testing.assert_close(results["ieee"], a @ b, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(results["hf32"], to_hf32(a) @ to_hf32(b), rtol=1e-5, atol=1e-5)
    assert (results["hf32"] - a @ b).abs().max() > 1e-4


def test_hf32_keeps_infinities_and_nan() -> None:
    a = torch.zeros(16, 16)
    a[0, 0], a[1, 0], a[2, 0] = float("inf"), float("-inf"), float("nan")
    out = torch.zeros(16, 16, device="npu")
    dot[(1,)](a.npu(), torch.ones(16, 16).npu(), out, PRECISION="hf32")
    torch.testing.assert_close(out.cpu(), a @ torch.ones(16, 16), equal_nan=True)


def test_a_precision_that_is_not_allowed_is_a_compile_error() -> None:
    x = torch.zeros(16, 16, device="npu")
    with pytest.raises(triton.CompilationError, match="input_precision must be one of"):
        dot[(1,)](x, x, x, PRECISION="hf32", allowed_dot_input_precisions=("ieee",))


@triton.jit
def assert_small(x, limit):
    i = tl.arange(0, 16)
    tl.device_assert(tl.load(x + i) < limit, "too big for 100%")


def test_debug_compiles_assertions() -> None:
    x = torch.arange(16, dtype=torch.int32).npu()
    launch(assert_small, x, 15)
    launch(assert_small, x, 16, debug=True)
    with pytest.raises(RuntimeError, match=r"failed: too big for 100%; kernel assert_small, program .*py:"):
        launch(assert_small, x, 15, debug=True)


@triton.jit
def assert_scalar(n):
    tl.device_assert(n > 3, "n is small")


def test_an_assertion_on_a_scalar() -> None:
    launch(assert_scalar, 4, debug=True)
    with pytest.raises(RuntimeError, match="device_assert failed: n is small"):
        launch(assert_scalar, 3, debug=True)


@triton.jit
def sum_of(x, y, out):
    i = tl.arange(0, 16)
    tl.store(out + i, tl.add(tl.load(x + i), tl.load(y + i)))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32], ids=str)
def test_sanitize_overflow_asserts_that_sums_fit(dtype: torch.dtype) -> None:
    most = torch.iinfo(dtype).max
    x = torch.full((16,), most - 1, dtype=dtype)
    fits, spills = torch.ones(16, dtype=dtype), torch.full((16,), 2, dtype=dtype)
    out = torch.zeros(16, dtype=dtype, device="npu")
    sum_of[(1,)](x.npu(), fits.npu(), out, debug=True)
    assert torch.equal(out.cpu(), x + fits)
    with pytest.raises(RuntimeError, match=r"failed: int\d+ overflow in operation add; kernel sum_of"):
        launch(sum_of, x.npu(), spills.npu(), out, debug=True)
    sum_of[(1,)](x.npu(), spills.npu(), out, debug=True, sanitize_overflow=False)
    assert torch.equal(out.cpu(), x + spills)


@triton.jit
def multiply_add(x, y, z, out):
    i = tl.arange(0, 64)
    tl.store(out + i, tl.load(x + i) * tl.load(y + i) + tl.load(z + i))


def test_fp_fusion_rounds_a_product_and_a_sum_once() -> None:
    x = torch.full((64,), 1 + 2**-12)
    z = torch.full((64,), -(1 + 2**-11))
    rounded_twice = torch.zeros(64)
    rounded_once = torch.full((64,), 2.0**-24)
    results = []
    for options in ({}, {"enable_fp_fusion": False}, {"enable_fp_fusion": True}):
        out = torch.ones(64, device="npu")
        multiply_add[(1,)](x.npu(), x.npu(), z.npu(), out, **options)
        results.append(out.cpu())
    assert torch.equal(results[0], rounded_twice)
    assert torch.equal(results[1], rounded_twice)
    assert torch.equal(results[2], rounded_once)
