"""What each primitive becomes in Triton IR, and that the stock adapter keeps it."""

# Arguments of kernels have no Python types.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import triton
import triton.language as tl
from triton.language import core

import triton_dist.language as dl

if TYPE_CHECKING:
    from kernel_compiler import CompiledKernel, Extern, KernelCompiler


def only(compiled: CompiledKernel) -> Extern:
    (extern,) = compiled.externs
    return extern


def definition(compiled: CompiledKernel, name: str) -> str:
    """The operation that defines an SSA value."""
    (line,) = re.findall(rf"{re.escape(name)} = ([^\n]*?)(?: loc|\n)", compiled.ttir)
    return str(line)


@triton.jit
def counts(out):
    tl.store(out, dl.rank())
    tl.store(out + 1, dl.num_ranks())
    tl.store(out + 2, dl.rank(axis=0) + dl.rank(-1))


def test_rank_and_num_ranks_are_pure_and_merged(compile_kernel: KernelCompiler) -> None:
    compiled = compile_kernel(counts, {"out": "*i32"})
    assert [(e.symbol, e.operands, e.types, e.type, e.pure) for e in compiled.externs] == [
        ("tdist_my_pe", (-1,), ("i32",), "i32", True),
        ("tdist_n_pes", (-1,), ("i32",), "i32", True),
    ]


@triton.jit
def remote_load(data, out, pe):
    tl.store(out, tl.load(dl.symm_at(data, pe)))


@pytest.mark.parametrize(
    ("element", "size"),
    [("fp32", 4), ("fp16", 2), ("bf16", 2), ("i8", 1), ("u8", 1), ("i1", 1), ("i16", 2), ("i64", 8), ("u64", 8)],
)
def test_symm_at_adds_a_number_of_elements(compile_kernel: KernelCompiler, element: str, size: int) -> None:
    compiled = compile_kernel(remote_load, {"data": f"*{element}", "out": f"*{element}", "pe": "i32"})
    delta = only(compiled)
    assert (delta.symbol, delta.types, delta.type, delta.pure) == ("tdist_delta", ("i64", "i32", "i32"), "i64", False)
    assert delta.operands[1:] == ("%arg2", size)
    assert definition(compiled, str(delta.operands[0])).startswith("tt.ptr_to_int %arg0 ")
    assert f"tt.addptr %arg0, {delta.result} " in compiled.ttir
    assert 'symbol = "tdist_delta"' in compiled.linalg


@triton.jit
def remote_load_from_constant_rank(data, out, PE: tl.constexpr):
    tl.store(out, tl.load(dl.symm_at(data, PE)))


def test_symm_at_takes_constants_and_any_integer(compile_kernel: KernelCompiler) -> None:
    signature = {"data": "*fp32", "out": "*fp32"}
    assert only(compile_kernel(remote_load_from_constant_rank, signature, PE=3)).operands[1:] == (3, 4)
    # An argument equal to 1 arrives as a constant.
    assert only(compile_kernel(remote_load, signature, pe=1)).operands[1:] == (1, 4)
    for wide in ("i64", "u32", "i16"):
        compiled = compile_kernel(remote_load, {**signature, "pe": wide})
        assert only(compiled).types == ("i64", "i32", "i32")


@triton.jit
def signal(word, pe, value, OP: tl.constexpr, SCOPE: tl.constexpr):
    dl.notify(word, pe, signal=value, sig_op=OP, comm_scope=SCOPE)


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("sign", ["i", "u"])
def test_notify_converts_the_signal_to_the_word(compile_kernel: KernelCompiler, width: int, sign: str) -> None:
    for value in ("i32", "i64", "u32"):
        signature = {"word": f"*{sign}{width}", "pe": "i32", "value": value}
        compiled = compile_kernel(signal, signature, OP="set", SCOPE="gpu")
        notify = only(compiled)
        assert notify.symbol == f"tdist_notify_i{width}"
        assert notify.types == ("i64", "i32", f"i{width}", "i32", "i32")
        assert (notify.type, notify.pure, notify.library) == ("i32", False, "tdist")
        assert f'symbol = "tdist_notify_i{width}"' in compiled.linalg


@pytest.mark.parametrize(("op", "op_number"), [("set", 1), ("add", 2)])
@pytest.mark.parametrize(("scope", "scope_number"), [("gpu", 0), ("intra_node", 1), ("inter_node", 2)])
def test_notify_words_have_the_numbers_of_the_dialect(
    compile_kernel: KernelCompiler, op: str, op_number: int, scope: str, scope_number: int
) -> None:
    compiled = compile_kernel(signal, {"word": "*i32"}, pe=1, value=1, OP=op, SCOPE=scope)
    assert only(compiled).operands[1:] == (1, 1, op_number, scope_number)


@triton.jit
def signal_by_default(word, pe):
    dl.notify(word, pe)


def test_notify_defaults(compile_kernel: KernelCompiler) -> None:
    notify = only(compile_kernel(signal_by_default, {"word": "*i64", "pe": "i32"}))
    assert notify.operands[1:] == ("%arg1", 1, 1, 2)


@triton.jit
def signal_value(word, VALUE: tl.constexpr):
    dl.notify(word, 0, VALUE)


@pytest.mark.parametrize(
    ("word", "value", "bits"),
    [
        ("*i32", -1, -1),
        ("*u32", 2**32 - 1, -1),
        ("*i32", 2**31 - 1, 2**31 - 1),
        ("*u64", 2**64 - 1, -1),
        ("*i64", -(2**63), -(2**63)),
        ("*i64", 2**40, 2**40),
    ],
)
def test_notify_keeps_the_bits_of_a_constant(compile_kernel: KernelCompiler, word: str, value: int, bits: int) -> None:
    assert only(compile_kernel(signal_value, {"word": word}, VALUE=value)).operands[2] == bits


@triton.jit
def wait_with_all_words(word, n, value, SCOPE: tl.constexpr, SEMANTIC: tl.constexpr):
    dl.wait(word, n, scope=SCOPE, semantic=SEMANTIC, waitValue=value)


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize(("scope", "scope_number"), [("gpu", 0), ("cta", 1), ("block", 1), ("sys", 2)])
def test_wait_stays_though_nobody_uses_its_token(
    compile_kernel: KernelCompiler, width: int, scope: str, scope_number: int
) -> None:
    semantics = ["relaxed", "acquire", "release", "acq_rel"]
    for number, semantic in enumerate(semantics):
        signature = {"word": f"*i{width}", "n": "i32", "value": "i64"}
        compiled = compile_kernel(wait_with_all_words, signature, SCOPE=scope, SEMANTIC=semantic)
        wait = only(compiled)
        assert wait.symbol == f"tdist_wait_i{width}"
        assert wait.types == ("i64", "i32", f"i{width}", "i32", "i32")
        assert wait.operands[3:] == (scope_number, number)
        assert (wait.type, wait.pure) == ("i32", False)
        assert f'symbol = "tdist_wait_i{width}"' in compiled.linalg


@triton.jit
def wait_positional(word, n):
    dl.wait(word, n, "gpu", "acquire")


@triton.jit
def wait_semantic_with_underscore(word, n):
    dl.wait(word, n, "gpu", _semantic="acquire")


@pytest.mark.parametrize("kernel", [wait_positional, wait_semantic_with_underscore])
def test_wait_takes_both_spellings_of_semantic(compile_kernel: KernelCompiler, kernel: triton.JITFunction) -> None:
    assert only(compile_kernel(kernel, {"word": "*i64", "n": "i32"})).operands[1:] == ("%arg1", 1, 0, 1)


@triton.jit
def wait_twice(word):
    dl.wait(word, 1, "gpu", "acquire")
    dl.wait(word, 1, "gpu", "acquire")


def test_equal_waits_are_not_merged(compile_kernel: KernelCompiler) -> None:
    assert [e.symbol for e in compile_kernel(wait_twice, {"word": "*i64"}).externs] == ["tdist_wait_i64"] * 2


@triton.jit
def store_notify_wait_load(data, word, out):
    tl.store(data, 1.0)
    dl.notify(word, 1)
    token = dl.wait(word, 1, "gpu", "acquire")
    tl.store(out, tl.load(dl.consume_token(data, token)))


def test_order_of_stores_signals_and_loads_is_kept(compile_kernel: KernelCompiler) -> None:
    compiled = compile_kernel(store_notify_wait_load, {"data": "*fp32", "word": "*i64", "out": "*fp32"})
    steps = re.findall(r"tt\.store|tt\.load|tdist_\w+", compiled.ttir)
    assert steps == ["tt.store", "tdist_notify_i64", "tdist_wait_i64", "tdist_zero", "tt.load", "tt.store"]
    steps = re.findall(r"materialize_in_destination|memref\.load|memref\.copy|tdist_\w+", compiled.linalg)
    store, load = "materialize_in_destination", "memref.load"
    assert steps == [store, "tdist_notify_i64", "tdist_wait_i64", "tdist_zero", load, store]


@triton.jit
def consume_pointer(data, word, out):
    token = dl.wait(word, 1, "gpu", "acquire")
    tl.store(out, tl.load(dl.consume_token(data, token)))


@triton.jit
def consume_pointers(data, word, out):
    token = dl.wait(word, 1, "gpu", "acquire")
    offsets = tl.arange(0, 16)
    tl.store(out + offsets, tl.load(dl.consume_token(data + offsets, token)))


@triton.jit
def consume_block_pointer(data, word, out):
    token = dl.wait(word, 1, "gpu", "acquire")
    block = tl.make_block_ptr(data, (64, 64), (64, 1), (0, 16), (16, 16), (1, 0))
    tile = tl.load(dl.consume_token(block, token))
    tl.store(out + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :], tile)


@triton.jit
def consume_number(data, word, out):
    value = tl.load(data)
    token = dl.wait(word, 1, "gpu", "acquire")
    tl.store(out, dl.consume_token(value, token))


@triton.jit
def consume_numbers(data, word, out):
    offsets = tl.arange(0, 16)
    values = tl.load(data + offsets)
    token = dl.wait(word, 1, "gpu", "acquire")
    tl.store(out + offsets, dl.consume_token(values, token))


@triton.jit
def consume_constant(data, word, out):
    token = dl.wait(word, 1, "gpu", "acquire")
    tl.store(out + dl.consume_token(3, token), tl.load(data))


@triton.jit
def consume_mask(data, word, out):
    offsets = tl.arange(0, 16)
    mask = tl.load(data + offsets) > 0
    token = dl.wait(word, 1, "gpu", "acquire")
    tl.store(out + offsets, 1, mask=dl.consume_token(mask, token))


@pytest.mark.parametrize("element", ["fp32", "fp16", "bf16", "i8", "i32", "u32", "i64"])
@pytest.mark.parametrize(
    "kernel",
    [
        consume_pointer,
        consume_pointers,
        consume_block_pointer,
        consume_number,
        consume_numbers,
        consume_constant,
        consume_mask,
    ],
)
def test_consume_token_depends_on_the_token(
    compile_kernel: KernelCompiler, kernel: triton.JITFunction, element: str
) -> None:
    compiled = compile_kernel(kernel, {"data": f"*{element}", "word": "*i64", "out": f"*{element}"})
    wait, zero = compiled.externs
    assert (zero.symbol, zero.operands, zero.types, zero.type) == ("tdist_zero", (wait.result,), ("i32",), "i64")
    assert not zero.pure
    # Something that is loaded or stored comes from the zero.
    assert len(re.findall(rf"{zero.result}\b", compiled.ttir)) > 1
    assert 'symbol = "tdist_zero"' in compiled.linalg


@core.extern
def my_library_function(address, count, _builder=None):
    return dl.extern_call(
        "mylib",
        "/opt/mylib.so",
        [address, count],
        {(core.int64, core.int32): ("my_sum", core.float32)},
        False,
        _builder=_builder,
    )


@core.extern
def my_library_action(count, _builder=None):
    return dl.extern_call("mylib", "", [count], {(core.int32,): ("my_action", ())}, True, _builder=_builder)


@triton.jit
def calls_library(data, out, n):
    tl.store(out, my_library_function(data, n))
    my_library_action(5)


def test_extern_call_passes_addresses_and_scalars(compile_kernel: KernelCompiler) -> None:
    compiled = compile_kernel(calls_library, {"data": "*fp32", "out": "*fp32", "n": "i32"})
    with_result, without = compiled.externs
    assert (with_result.library, with_result.path) == ("mylib", "/opt/mylib.so")
    assert (with_result.symbol, with_result.types, with_result.type) == ("my_sum", ("i64", "i32"), "f32")
    assert not with_result.pure
    # What has no result is there for its effect, whatever is_pure says.
    assert (without.symbol, without.operands, without.pure) == ("my_action", (5,), False)
    assert 'symbol = "my_action"' in compiled.linalg


@core.extern
def pure_library_function(count, _builder=None):
    return dl.extern_call("mylib", "", [count], {(core.int32,): ("my_square", core.int32)}, True, _builder=_builder)


@triton.jit
def calls_pure_library_function(out, n):
    tl.store(out, pure_library_function(n) + pure_library_function(n))


def test_extern_call_can_be_pure(compile_kernel: KernelCompiler) -> None:
    extern = only(compile_kernel(calls_pure_library_function, {"out": "*i32", "n": "i32"}))
    assert (extern.symbol, extern.pure) == ("my_square", True)


@triton.jit
def helper(word, pe, OP: tl.constexpr):
    dl.notify(word + 8 * pe, pe, sig_op=OP)


@triton.jit
def notifies_in_a_helper(word, n):
    for i in range(n):
        helper(word, i, "set")


def test_primitives_work_in_functions_that_kernels_call(compile_kernel: KernelCompiler) -> None:
    notify = only(compile_kernel(notifies_in_a_helper, {"word": "*i64", "n": "i32"}))
    assert notify.operands[2:] == (1, 1, 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda: dl.rank(),
        lambda: dl.num_ranks(),
        lambda: dl.symm_at(None, 0),
        lambda: dl.notify(None, 0),
        lambda: dl.wait(None, 1, "gpu", "acquire"),
        lambda: dl.consume_token(None, None),
        lambda: dl.extern_call("", "", [], {}, False),
    ],
)
def test_outside_of_a_kernel_every_primitive_says_so(call) -> None:
    with pytest.raises(RuntimeError, match=r"works in kernels only.*@triton\.jit"):
        call()
