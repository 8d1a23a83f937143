"""What each aclshmem device function becomes in Triton IR, and that the stock adapter keeps it."""

# Arguments of kernels have no Python types.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import triton
import triton.language as tl

from triton_dist.language.extra import libshmem_device as shmem

if TYPE_CHECKING:
    from kernel_compiler import KernelCompiler


@triton.jit
def counts(data, word):
    tl.store(word, shmem.my_pe() + shmem.n_pes())
    tl.store(word, shmem.team_my_pe(2) + shmem.team_n_pes(2))


@triton.jit
def remote(data, word):
    tl.store(shmem.remote_ptr(data, 3), 1.0)


@triton.jit
def ordering(data, word):
    shmem.barrier_all()
    shmem.barrier_all_vec()
    shmem.quiet()
    shmem.fence()


@triton.jit
def words(data, word):
    shmem.int_p(word, 7, 2)
    shmem.signal_op(word, 5, shmem.SIGNAL_SET, 1)
    shmem.signal_op(word, 5, shmem.SIGNAL_ADD, 1)


@triton.jit
def copies(data, word):
    shmem.putmem(data, data, 64, 1)
    shmem.putmem_nbi(data, data, 64, 1)
    shmem.getmem(data, data, 64, 1)
    shmem.getmem_nbi(data, data, 64, 1)


@triton.jit
def copies_with_signal(data, word):
    shmem.putmem_signal(data, data, 64, word, 9, shmem.SIGNAL_SET, 1)
    shmem.putmem_signal_nbi(data, data, 64, word, 9, shmem.SIGNAL_ADD, 1)


ADDRESS = "i64"
DATA, WORD = "address of data", "address of word"


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (
            counts,
            [
                ("tdist_my_pe", [-1], True),
                ("tdist_n_pes", [-1], True),
                ("tdist_team_my_pe", [2], True),
                ("tdist_team_n_pes", [2], True),
            ],
        ),
        (remote, [("tdist_delta", [DATA, 3, 4], False)]),
        (
            ordering,
            [
                ("tdist_barrier_all", [0], False),
                ("tdist_barrier_all_vec", [0], False),
                ("tdist_quiet", [0], False),
                ("tdist_fence", [0], False),
            ],
        ),
        (
            words,
            [
                ("tdist_int_p", [WORD, 7, 2], False),
                ("tdist_signal_op", [WORD, 5, 0, 1], False),
                ("tdist_signal_op", [WORD, 5, 1, 1], False),
            ],
        ),
        (
            copies,
            [
                (f"tdist_{name}", [DATA, DATA, 64, 1], False)
                for name in ("putmem", "putmem_nbi", "getmem", "getmem_nbi")
            ],
        ),
        (
            copies_with_signal,
            [
                ("tdist_putmem_signal", [DATA, DATA, 64, WORD, 9, 0, 1], False),
                ("tdist_putmem_signal_nbi", [DATA, DATA, 64, WORD, 9, 1, 1], False),
            ],
        ),
    ],
)
def test_functions_become_extern_calls_in_order(
    compile_kernel: KernelCompiler, kernel: triton.JITFunction, expected: list[tuple[str, list[Any], bool]]
) -> None:
    compiled = compile_kernel(kernel, {"data": "*fp32", "word": "*i32"})
    addresses = {
        line.split(" = ")[0].strip(): DATA if "%arg0" in line else WORD
        for line in compiled.ttir.splitlines()
        if "tt.ptr_to_int" in line
    }
    seen = [(e.symbol, [addresses.get(str(o), o) for o in e.operands], e.pure) for e in compiled.externs]
    assert seen == expected
    for symbol, _, _ in expected:
        assert compiled.linalg.count(f'symbol = "{symbol}"') == [s for s, _, _ in expected].count(symbol)


@triton.jit
def wait_until(word, out, value, CMP: tl.constexpr):
    tl.store(out, shmem.signal_wait_until(word, CMP, value))


@pytest.mark.parametrize(
    ("constant", "number"),
    [
        (shmem.CMP_EQ, 0),
        (shmem.CMP_NE, 1),
        (shmem.CMP_GT, 2),
        (shmem.CMP_GE, 3),
        (shmem.CMP_LT, 4),
        (shmem.CMP_LE, 5),
    ],
)
def test_signal_wait_until_has_aclshmem_numbers(
    compile_kernel: KernelCompiler, constant: tl.constexpr, number: int
) -> None:
    compiled = compile_kernel(wait_until, {"word": "*i32", "out": "*i32", "value": "i32"}, CMP=constant.value)
    (extern,) = compiled.externs
    assert (extern.symbol, extern.operands[1], extern.type, extern.pure) == (
        "tdist_signal_wait_until",
        number,
        "i32",
        False,
    )


@triton.jit
def dynamic(data, word, size, pe):
    shmem.putmem(data + 8 * pe, data, size * 4, pe)


def test_sizes_and_ranks_may_be_dynamic(compile_kernel: KernelCompiler) -> None:
    compiled = compile_kernel(dynamic, {"data": "*fp32", "word": "*i32", "size": "i64", "pe": "i64"})
    (extern,) = compiled.externs
    assert extern.types == ("i64", "i64", "i32", "i32")


def test_outside_of_a_kernel_functions_say_so() -> None:
    with pytest.raises(RuntimeError, match="barrier_all works in kernels only"):
        shmem.barrier_all()
