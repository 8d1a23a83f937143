"""Misuse is an error at the line of the call that names the argument, what it is, and what is allowed."""

# Arguments of kernels have no Python types.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import triton
import triton.language as tl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from triton.language import core

import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem

if TYPE_CHECKING:
    from kernel_compiler import KernelCompiler

BASE = {"p": "*fp32", "s": "*i64", "w": "*i32", "n": "i32", "x": "fp32"}


@triton.jit
def symm_at_tensor_of_pointers(p, s, w, n, x):
    dl.symm_at(p + tl.arange(0, 16), 0)  # here


@triton.jit
def symm_at_block_pointer(p, s, w, n, x):
    block = tl.make_block_ptr(p, (64,), (1,), (0,), (16,), (0,))
    dl.symm_at(block, 0)  # here


@triton.jit
def symm_at_scalar(p, s, w, n, x):
    dl.symm_at(n, 0)  # here


@triton.jit
def symm_at_number(p, s, w, n, x):
    dl.symm_at(7, 0)  # here


@triton.jit
def symm_at_float_rank(p, s, w, n, x):
    dl.symm_at(p, x)  # here


@triton.jit
def symm_at_string_rank(p, s, w, n, x):
    dl.symm_at(p, "left")  # here


@triton.jit
def symm_at_constant_float_rank(p, s, w, n, x):
    dl.symm_at(p, 1.0)  # here


@triton.jit
def symm_at_true(p, s, w, n, x):
    dl.symm_at(p, True)  # here


@triton.jit
def symm_at_block_of_ranks(p, s, w, n, x):
    dl.symm_at(p, tl.arange(0, 2))  # here


@triton.jit
def notify_float_word(p, s, w, n, x):
    dl.notify(p, 0)  # here


@triton.jit
def notify_tensor_of_pointers(p, s, w, n, x):
    dl.notify(s + tl.arange(0, 16), 0)  # here


@triton.jit
def notify_block_pointer(p, s, w, n, x):
    block = tl.make_block_ptr(s, (64,), (1,), (0,), (16,), (0,))
    dl.notify(block, 0)  # here


@triton.jit
def notify_no_pointer(p, s, w, n, x):
    dl.notify(n, 0)  # here


@triton.jit
def notify_float_signal(p, s, w, n, x):
    dl.notify(s, 0, signal=x)  # here


@triton.jit
def notify_signal_too_wide(p, s, w, n, x):
    dl.notify(w, 0, signal=4294967296)  # here


@triton.jit
def notify_sig_op_number(p, s, w, n, x):
    dl.notify(s, 0, sig_op=1)  # here


@triton.jit
def wait_float_word(p, s, w, n, x):
    dl.wait(p, 1, "gpu", "acquire")  # here


@triton.jit
def wait_negative_count(p, s, w, n, x):
    dl.wait(s, -1, "gpu", "acquire")  # here


@triton.jit
def wait_float_count(p, s, w, n, x):
    dl.wait(s, x, "gpu", "acquire")  # here


@triton.jit
def wait_no_semantic(p, s, w, n, x):
    dl.wait(s, 1, "gpu")  # here


@triton.jit
def wait_two_semantics(p, s, w, n, x):
    dl.wait(s, 1, "gpu", semantic="acquire", _semantic="acquire")  # here


@triton.jit
def wait_block_pointer(p, s, w, n, x):
    block = tl.make_block_ptr(s, (64,), (1,), (0,), (16,), (0,))
    dl.wait(block, 1, "gpu", "acquire")  # here


@triton.jit
def consume_float_token(p, s, w, n, x):
    dl.consume_token(p, x)  # here


@triton.jit
def consume_string(p, s, w, n, x):
    dl.consume_token("p", n)  # here


@triton.jit
def rank_of_axis_1(p, s, w, n, x):
    dl.rank(1)  # here


@core.extern
def unknown_types(value, _builder=None):
    return dl.extern_call("", "", [value], {(core.int32,): ("f", core.int32)}, True, _builder=_builder)


@triton.jit
def extern_call_unknown_types(p, s, w, n, x):
    unknown_types(x)  # here


@triton.jit
def extern_call_block(p, s, w, n, x):
    unknown_types(tl.arange(0, 16))  # here


@triton.jit
def signal_op_on_64_bits(p, s, w, n, x):
    shmem.signal_op(s, 1, shmem.SIGNAL_SET, 0)  # here


@triton.jit
def signal_op_unknown_op(p, s, w, n, x):
    shmem.signal_op(w, 1, 2, 0)  # here


@triton.jit
def wait_until_unknown_comparison(p, s, w, n, x):
    shmem.signal_wait_until(w, 6, 0)  # here


@triton.jit
def putmem_negative_size(p, s, w, n, x):
    shmem.putmem(p, p, -4, 0)  # here


@triton.jit
def putmem_block(p, s, w, n, x):
    shmem.putmem(p, p + tl.arange(0, 16), 64, 0)  # here


@pytest.mark.parametrize(
    ("kernel", "parts"),
    [
        (symm_at_tensor_of_pointers, ["symm_at: ptr", "tensor of pointers", "scalar pointer"]),
        (symm_at_block_pointer, ["symm_at: ptr", "block pointer", "scalar pointer"]),
        (symm_at_scalar, ["symm_at: ptr", "int32", "scalar pointer"]),
        (symm_at_number, ["symm_at: ptr is 7", "pointer"]),
        (symm_at_float_rank, ["symm_at: rank", "fp32", "integer"]),
        (symm_at_string_rank, ["symm_at: rank is 'left'", "integer"]),
        (symm_at_constant_float_rank, ["symm_at: rank is 1.0", "integer"]),
        (symm_at_true, ["symm_at: rank is True", "integer"]),
        (symm_at_block_of_ranks, ["symm_at: rank", "int32>", "scalar"]),
        (notify_float_word, ["notify: ptr points to fp32", "int32, uint32, int64, uint64"]),
        (notify_tensor_of_pointers, ["notify: ptr", "tensor of pointers", "scalar pointer"]),
        (notify_block_pointer, ["notify: ptr", "block pointer", "scalar pointer"]),
        (notify_no_pointer, ["notify: ptr", "int32", "scalar pointer"]),
        (notify_float_signal, ["notify: signal", "fp32", "integer"]),
        (notify_signal_too_wide, ["notify: signal is 4294967296", "from -2147483648 to 4294967295"]),
        (notify_sig_op_number, ["notify: sig_op is 1", "'set', 'add'"]),
        (wait_float_word, ["wait: barrierPtrs points to fp32", "int32, uint32, int64, uint64"]),
        (wait_negative_count, ["wait: numBarriers is -1", "from 0"]),
        (wait_float_count, ["wait: numBarriers", "fp32", "integer"]),
        (wait_no_semantic, ["wait: semantic is None", "'relaxed', 'acquire', 'release', 'acq_rel'"]),
        (wait_two_semantics, ["wait: semantic is given twice"]),
        (wait_block_pointer, ["wait: barrierPtrs", "block pointer", "scalar pointer"]),
        (consume_float_token, ["consume_token: token", "fp32", "integer"]),
        (consume_string, ["consume_token: value is 'p'", "pointer or a number"]),
        (rank_of_axis_1, ["rank: axis is 1", "-1 or 0"]),
        (extern_call_unknown_types, ["extern_call: args are (fp32)", "(int32)"]),
        (extern_call_block, ["extern_call: args[0]", "scalar"]),
        (signal_op_on_64_bits, ["signal_op: sig_addr points to int64", "int32"]),
        (signal_op_unknown_op, ["signal_op: sig_op is 2", "from 0 to 1"]),
        (wait_until_unknown_comparison, ["signal_wait_until: cmp is 6", "from 0 to 5"]),
        (putmem_negative_size, ["putmem: nbytes is -4", "from 0"]),
        (putmem_block, ["putmem: source", "tensor of pointers", "scalar pointer"]),
    ],
    ids=lambda value: value.__name__ if isinstance(value, triton.JITFunction) else "",
)
def test_misuse_is_an_error_at_the_line_of_the_call(
    compile_kernel: KernelCompiler, kernel: triton.JITFunction, parts: list[str]
) -> None:
    error = compile_kernel.error(kernel, BASE)
    assert error.src.splitlines()[error.node.lineno - 1].endswith("# here")
    for part in parts:
        assert part in str(error.error_message)


@pytest.mark.parametrize("word", ["*i8", "*u8", "*i16", "*u16", "*i1", "*fp16", "*bf16", "*fp64"])
def test_signal_words_of_other_types_are_refused(compile_kernel: KernelCompiler, word: str) -> None:
    for kernel in (notify_set, wait_once):
        assert "it must point to one of int32, uint32, int64, uint64" in str(compile_kernel.error(kernel, {"s": word}))


@triton.jit
def notify_set(s):
    dl.notify(s, 0)


@triton.jit
def notify_add(s):
    dl.notify(s, 0, sig_op="add")


@triton.jit
def wait_once(s):
    dl.wait(s, 1, "gpu", "acquire")


@triton.jit
def put_into(s):
    shmem.putmem(s, s, 4, 0)


@triton.jit
def int_into(s):
    shmem.int_p(s, 4, 0)


def test_pointers_to_constants_are_not_written(compile_kernel: KernelCompiler) -> None:
    for kernel in (notify_set, put_into, int_into):
        assert "points to constants" in str(compile_kernel.error(kernel, {"s": "*ki32"}))
    compile_kernel(wait_once, {"s": "*ki32"})


@pytest.mark.parametrize("soc", ["Ascend910B1", "Ascend910B3", "Ascend910_9392"])
@pytest.mark.parametrize(("word", "name"), [("*i64", "int64"), ("*u64", "uint64"), ("*u32", "uint32")])
def test_a2_and_a3_add_to_int32_only(compile_kernel: KernelCompiler, soc: str, word: str, name: str) -> None:
    compile_kernel(notify_add, {"s": "*i32"}, soc=soc)
    compile_kernel(notify_set, {"s": word}, soc=soc)
    message = str(compile_kernel.error(notify_add, {"s": word}, soc=soc).error_message)
    for part in ("notify: sig_op is 'add'", f"ptr points to {name}", soc, "int32"):
        assert part in message


@pytest.mark.parametrize("word", ["*i32", "*u32", "*i64", "*u64"])
def test_ascend950_adds_to_all_words(compile_kernel: KernelCompiler, word: str) -> None:
    module, _, _ = compile_kernel.ttir(notify_add, {"s": word}, soc="Ascend950PR_9589")
    assert "tdist_notify_i" in str(module)


@triton.jit
def words(s, SIG_OP: tl.constexpr, COMM_SCOPE: tl.constexpr, SCOPE: tl.constexpr, SEMANTIC: tl.constexpr):
    dl.notify(s, 0, sig_op=SIG_OP, comm_scope=COMM_SCOPE)
    dl.wait(s, 1, SCOPE, SEMANTIC)


KNOWN = {
    "SIG_OP": ["set", "add"],
    "COMM_SCOPE": ["gpu", "intra_node", "inter_node"],
    "SCOPE": ["gpu", "cta", "block", "sys"],
    "SEMANTIC": ["relaxed", "acquire", "release", "acq_rel"],
}
USUAL = {name: known[0] for name, known in KNOWN.items()}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(argument=st.sampled_from(sorted(KNOWN)), word=st.text(max_size=12))
def test_unknown_words_are_refused_and_known_ones_are_not(
    compile_kernel: KernelCompiler, argument: str, word: str
) -> None:
    if word in KNOWN[argument]:
        compile_kernel.ttir(words, {"s": "*i32"}, **{**USUAL, argument: word})
        return
    message = str(compile_kernel.error(words, {"s": "*i32"}, **{**USUAL, argument: word}).error_message)
    assert argument.lower() in message
    for known in KNOWN[argument]:
        assert known in message


@pytest.mark.parametrize(
    ("argument", "word", "near"),
    [
        ("SIG_OP", "sett", "set"),
        ("SIG_OP", "ADD", "add"),
        ("COMM_SCOPE", "intranode", "intra_node"),
        ("SCOPE", "system", "sys"),
        ("SEMANTIC", "aquire", "acquire"),
    ],
)
def test_the_nearest_word_is_named(compile_kernel: KernelCompiler, argument: str, word: str, near: str) -> None:
    message = str(compile_kernel.error(words, {"s": "*i32"}, **{**USUAL, argument: word}).error_message)
    assert f"is '{word}'" in message.replace("\\'", "'")
    assert f"did you mean '{near}'?" in message.replace("\\'", "'")


@triton.jit
def constant_ranks(p, s, w, PE: tl.constexpr, WHICH: tl.constexpr):
    if WHICH == 0:
        dl.symm_at(p, PE)
    elif WHICH == 1:
        dl.notify(s, PE)
    elif WHICH == 2:
        shmem.remote_ptr(p, PE)
    elif WHICH == 3:
        shmem.int_p(w, 1, PE)
    elif WHICH == 4:
        shmem.getmem(p, p, 4, PE)
    else:
        dl.wait(s, PE, "gpu", "acquire")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pe=st.integers(min_value=-(2**40), max_value=2**40), which=st.integers(0, 5))
def test_constant_ranks_and_counts_are_not_negative(compile_kernel: KernelCompiler, pe: int, which: int) -> None:
    signature = {"p": "*fp32", "s": "*i64", "w": "*i32"}
    if 0 <= pe < 2**31:
        compile_kernel.ttir(constant_ranks, signature, PE=pe, WHICH=which)
        return
    message = str(compile_kernel.error(constant_ranks, signature, PE=pe, WHICH=which).error_message)
    assert re.search(rf"(rank|pe|numBarriers) is {pe}; it must be from 0 to 2147483647", message)
