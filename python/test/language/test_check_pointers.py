"""Pointers that the stock adapter gets wrong are refused by name and line; what it can do is let through."""

# Arguments of kernels have no Python types.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest
import triton
import triton.language as tl
from triton.language.extra.ascend import libdevice

import triton_dist.language as dl
from triton_dist.compiler import check_pointers
from triton_dist.compiler.errors import KernelCompileError

if TYPE_CHECKING:
    from kernel_compiler import KernelCompiler

SIGNATURE = {"p": "*fp32", "q": "*fp32", "o": "*fp32", "s": "*i32", "c": "i32"}

# The line that a message must name is marked: CHOSEN, REBASED, CAST, TENSOR or WIDTH.


@triton.jit
def where_of_scalars(p, q, o, s, c):
    r = tl.where(c > 0, p, q)  # CHOSEN
    tl.store(o + tl.arange(0, 16), tl.load(r + tl.arange(0, 16)))


@triton.jit
def where_of_tensors(p, q, o, s, c):
    offsets = tl.arange(0, 16)
    r = tl.where(offsets > c, p + offsets, q + offsets)  # CHOSEN
    tl.store(o + offsets, tl.load(r))


@triton.jit
def where_of_one_tensor(p, q, o, s, c):
    r = tl.where(c > 0, p + 4, p + 8)  # CHOSEN
    tl.store(o + tl.arange(0, 16), tl.load(r + tl.arange(0, 16)))


@triton.jit
def if_else(p, q, o, s, c):
    if c > 0:  # CHOSEN
        r = p
    else:
        r = q
        tl.store(o, 1.0)
    tl.store(o + tl.arange(0, 16), tl.load(r + tl.arange(0, 16)))


@triton.jit
def if_that_moves(p, q, o, s, c):
    if c > 0:  # CHOSEN
        p += 4
        tl.store(o, 1.0)
    tl.store(o + tl.arange(0, 16), tl.load(p + tl.arange(0, 16)))


@triton.jit
def if_for_a_signal(p, q, o, s, c):
    r = s
    if c > 0:  # CHOSEN
        r += 16
        tl.store(o, 1.0)
    dl.notify(r, 0)


@triton.jit
def conditional_expression(p, q, o, s, c):
    r = p if c > 0 else q  # CHOSEN
    tl.store(o + tl.arange(0, 16), tl.load(r + tl.arange(0, 16)))


@triton.jit
def if_in_a_loop(p, q, o, s, c):
    for i in range(c):
        tl.store(o + i, tl.load(p))
        if i % 2 == 0:  # CHOSEN
            p += 16


@triton.jit
def if_of_block_pointers(p, q, o, s, c):
    block = tl.make_block_ptr(p, (64,), (1,), (0,), (16,), (0,))
    if c > 0:  # CHOSEN
        block = tl.advance(block, (16,))
        tl.store(o, 1.0)
    tl.store(o + tl.arange(0, 16), tl.load(block))


@triton.jit
def if_with_a_return(p, q, o, s, c):
    r = p
    if c > 3:  # CHOSEN
        r = q
        if c > 5:
            return
    tl.store(o + tl.arange(0, 16), tl.load(r + tl.arange(0, 16)))


@triton.jit
def pick(p, q, c):
    if c > 0:  # CHOSEN
        return p
    else:  # noqa: RET505  (without it, Triton makes another kernel of it)
        return q


@triton.jit
def if_in_a_function(p, q, o, s, c):
    tl.store(o + tl.arange(0, 16), tl.load(pick(p, q, c) + tl.arange(0, 16)))


@triton.jit
def for_that_swaps(p, q, o, s, c):
    for i in range(c):  # REBASED
        tl.store(o + i, tl.load(p))
        t = p
        p = q
        q = t


@triton.jit
def while_that_swaps(p, q, o, s, c):
    i = 0
    while i < c:  # REBASED
        tl.store(o + i, tl.load(p))
        t = p
        p = q
        q = t
        i += 1


@triton.jit
def for_that_goes_on_elsewhere(p, q, o, s, c):
    offsets = tl.arange(0, 16)
    here = p + offsets
    there = q + offsets
    for i in range(c):  # REBASED
        tl.store(o + i * 16 + offsets, tl.load(here))
        here = there + i


@triton.jit
def for_that_swaps_blocks(p, q, o, s, c):
    here = tl.make_block_ptr(p, (64,), (1,), (0,), (16,), (0,))
    there = tl.make_block_ptr(q, (64,), (1,), (0,), (16,), (0,))
    for i in range(c):  # REBASED
        tl.store(o + i * 16 + tl.arange(0, 16), tl.load(here))
        t = here
        here = there
        there = t


@triton.jit
def cast_before_a_loop(p, q, o, s, c):
    r = p.to(tl.pointer_type(tl.int32))
    for i in range(c):  # CAST
        tl.store(r, i)
        r += 4


@triton.jit
def cast_to_bytes_after_an_offset(p, q, o, s, c):
    r = (p + c).to(tl.pointer_type(tl.int8))  # WIDTH
    tl.store(r, 1)


@triton.jit
def cast_to_bytes_of_a_remote_pointer(p, q, o, s, c):
    r = dl.symm_at(p, c).to(tl.pointer_type(tl.int8))  # WIDTH
    tl.store(r, 1)


@triton.jit
def cast_to_bytes_of_a_moved_pointer(p, q, o, s, c):
    for _ in range(c):
        r = p.to(tl.pointer_type(tl.int8))  # WIDTH
        tl.store(r, 1)
        p += 4


@triton.jit
def for_with_a_primitive_that_moves_a_tensor(p, q, o, s, c):
    here = p + tl.arange(0, 16)
    for i in range(c):
        tl.store(here, i)
        dl.notify(s, i)  # TENSOR
        here += 16


@triton.jit
def while_with_a_primitive_that_moves_a_tensor(p, q, o, s, c):
    here = p + tl.arange(0, 16)
    i = 0
    while i < c:
        tl.store(here, i)
        if i > 2:
            tl.store(dl.symm_at(q, i), 1.0)  # TENSOR
        here += 16
        i += 1


REFUSED = {
    "CHOSEN": [
        where_of_scalars,
        where_of_tensors,
        where_of_one_tensor,
        if_else,
        if_that_moves,
        if_for_a_signal,
        conditional_expression,
        if_in_a_loop,
        if_of_block_pointers,
        if_with_a_return,
        if_in_a_function,
    ],
    "REBASED": [for_that_swaps, while_that_swaps, for_that_goes_on_elsewhere, for_that_swaps_blocks],
    "CAST": [cast_before_a_loop],
    "TENSOR": [for_with_a_primitive_that_moves_a_tensor, while_with_a_primitive_that_moves_a_tensor],
    "WIDTH": [
        cast_to_bytes_after_an_offset,
        cast_to_bytes_of_a_remote_pointer,
        cast_to_bytes_of_a_moved_pointer,
    ],
}
ADVICE = {
    "CHOSEN": "choose the offset, not the pointer",
    "REBASED": "choose the offset, not the pointer",
    "CAST": "cast it in the loop",
    "TENSOR": "move the scalar pointer",
    "WIDTH": "cast first, then add the offset",
}


def marked_line(function: triton.JITFunction, mark: str) -> int | None:
    lines, first = inspect.getsourcelines(function.fn)
    return next((first + i for i, line in enumerate(lines) if line.rstrip().endswith(f"# {mark}")), None)


@pytest.mark.parametrize(
    ("mark", "kernel"),
    [(mark, kernel) for mark, kernels in REFUSED.items() for kernel in kernels],
    ids=lambda value: value.__name__ if isinstance(value, triton.JITFunction) else "",
)
def test_refused_at_the_line_that_is_to_blame(
    compile_kernel: KernelCompiler, mark: str, kernel: triton.JITFunction
) -> None:
    module, _, _ = compile_kernel.ttir(kernel, SIGNATURE)
    with pytest.raises(KernelCompileError) as caught:
        check_pointers.check(str(module), kernel.__name__)
    line = marked_line(kernel, mark) or marked_line(pick, mark)
    assert str(caught.value).startswith(f"{__file__}:{line}:")
    assert f"in kernel {kernel.__name__}," in str(caught.value)
    assert ADVICE[mark] in str(caught.value)


@triton.jit
def chosen_offset(p, q, o, s, c):
    r = p + tl.where(c > 0, 4, 8)
    tl.store(o + tl.arange(0, 16), tl.load(r + tl.arange(0, 16)))


@triton.jit
def for_that_moves(p, q, o, s, c):
    for i in range(c):
        tl.store(o + tl.arange(0, 16), tl.load(p + tl.arange(0, 16)))
        p += 16
        o += 16
        dl.notify(s, i)
        s += 16
    tl.store(o, tl.load(p))


@triton.jit
def while_that_moves(p, q, o, s, c):
    i = 0
    while i < c:
        tl.store(o + tl.arange(0, 16), tl.load(p + tl.arange(0, 16)))
        p += 16
        dl.notify(s, i)
        s += 16
        i += 1


@triton.jit
def loops_that_move_tensors(p, q, o, s, c):
    here = p + tl.arange(0, 16)
    for _ in range(c):
        # A pure extern call may be moved.
        tl.store(o + dl.rank() * 16 + tl.arange(0, 16), libdevice.tanh(tl.load(here)))
        here += 16
    there = q + tl.arange(0, 16)
    i = 0
    while i < c:
        tl.store(there, i)
        there += 16
        i += 1


@triton.jit
def matmul_that_waits_for_tiles(p, q, o, s, c):
    lane = tl.arange(0, 16)
    for tile in range(c):
        token = dl.wait(s + tile * 16, 1, "gpu", "acquire")
        a = dl.consume_token(p, token) + (tile * 16 + lane)[:, None] * 64 + lane[None, :]
        b = q + lane[:, None] * 16 + lane[None, :]
        sums = tl.zeros((16, 16), tl.float32)
        for _ in range(4):
            sums += tl.dot(tl.load(a), tl.load(b))
            a += 16
            b += 256
        tl.store(o + (tile * 16 + lane)[:, None] * 16 + lane[None, :], sums)


@triton.jit
def nested_loops(p, q, o, s, c):
    for _ in range(c):
        for _ in range(c):
            tl.store(o, tl.load(p))
            p += 16
        o += 1


@triton.jit
def loop_over_ranks(p, q, o, s, c):
    r = p
    for i in range(c):
        tl.store(o + i, tl.load(r))
        r = dl.symm_at(p, i)


@triton.jit
def loop_over_tokens(p, q, o, s, c):
    for i in range(c):
        token = dl.wait(s, 1, "gpu", "acquire")
        p = dl.consume_token(p, token)
        tl.store(o + i, tl.load(p))
        s += 16


@triton.jit
def loop_over_blocks(p, q, o, s, c):
    block = tl.make_block_ptr(p, (64,), (1,), (0,), (16,), (0,))
    for i in range(c):
        tl.store(o + i * 16 + tl.arange(0, 16), tl.load(block))
        block = tl.advance(block, (16,))


@triton.jit
def loop_without_pointers(p, q, o, s, c):
    total = tl.zeros((16,), tl.float32)
    count = 0
    for i in range(c):
        total += tl.load(p + i * 16 + tl.arange(0, 16))
        if i > 2:
            count += 1
    tl.store(o + tl.arange(0, 16), total + count)


@triton.jit
def early_return(p, q, o, s, c):
    if c > 3:
        return
    tl.store(o + tl.arange(0, 16), tl.load(p + tl.arange(0, 16)))


@triton.jit
def reduction(p, q, o, s, c):
    tl.store(o, tl.sum(tl.load(p + tl.arange(0, 16)), 0))


@triton.jit
def chosen_value(p, q, o, s, c):
    tl.store(o, tl.where(c > 0, tl.load(p), tl.load(q)))


@triton.jit
def casts(p, q, o, s, c):
    token = dl.wait(s, 1, "gpu", "acquire")
    as_bytes = p.to(tl.pointer_type(tl.int8))
    tl.store(as_bytes + 4 * c + tl.arange(0, 16), tl.full((16,), 1, tl.int8))
    same_size = (dl.consume_token(q, token) + c).to(tl.pointer_type(tl.int32))
    dl.notify(same_size + 16, 0)
    tl.store(dl.consume_token(q, token).to(tl.pointer_type(tl.int8)) + tl.arange(0, 16), tl.full((16,), 1, tl.int8))


@triton.jit
def casts_in_a_loop(p, q, o, s, c):
    for i in range(c):
        as_words = p.to(tl.pointer_type(tl.int32))
        tl.store(as_words, i)
        p += 4


@pytest.mark.parametrize(
    "kernel",
    [
        chosen_offset,
        for_that_moves,
        while_that_moves,
        loops_that_move_tensors,
        matmul_that_waits_for_tiles,
        nested_loops,
        loop_over_ranks,
        loop_over_tokens,
        loop_over_blocks,
        loop_without_pointers,
        early_return,
        reduction,
        chosen_value,
        casts,
        casts_in_a_loop,
    ],
    ids=lambda kernel: kernel.__name__,
)
def test_what_the_adapter_can_do_is_let_through(compile_kernel: KernelCompiler, kernel: triton.JITFunction) -> None:
    compiled = compile_kernel(kernel, SIGNATURE)
    check_pointers.check(compiled.ttir, kernel.__name__)


@triton.jit
def booleans(flags, o, c):
    tl.store(o, tl.load(flags + c).to(tl.int32))


def test_pointers_to_booleans_are_bytes(compile_kernel: KernelCompiler) -> None:
    compiled = compile_kernel(booleans, {"flags": "*i1", "o": "*i32", "c": "i32"})
    check_pointers.check(compiled.ttir, "booleans")
