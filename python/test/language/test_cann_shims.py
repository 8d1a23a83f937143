"""`triton.language.extra.cann` where triton-ascend 3.2.0 lacks it."""

# Arguments of kernels have no Python types.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
import triton
import triton.language as tl
import triton.language.extra.cann.extension as al
from triton.language.extra.cann import libdevice

if TYPE_CHECKING:
    from kernel_compiler import KernelCompiler


@triton.jit
def slices(x, out):
    tile = tl.load(x + tl.arange(0, 16))
    half = al.extract_slice(tile, (4,), (8,), (1,))
    tile = al.insert_slice(tile, half, (0,), (8,), (1,))
    tl.store(out + tl.arange(0, 16), tile)


@triton.jit
def elements(x, out):
    tile = tl.load(x + tl.arange(0, 16))
    for i in range(16):
        tl.store(out + i, al.get_element(tile, (i,)))


@triton.jit
def parallel_loop(x, out):
    for i in al.parallel(0, 16, bind_sub_block=True):
        tl.store(out + i, tl.load(x + i))


@triton.jit
def hints(x, out):
    tile = tl.load(x + tl.arange(0, 16))
    al.compile_hint(tile, "bitwise_mask")
    al.multibuffer(tile, 2)
    tl.store(out + tl.arange(0, 16), tile)


@triton.jit
def block_sync(x, out):
    al.sync_block_set("cube", "vector", 5)
    al.sync_block_wait("cube", "vector", 5)
    al.sync_block_all("all", 6)
    tl.store(out, tl.load(x))


@triton.jit
def order_changes(x, out):
    tile = tl.load(x + tl.arange(0, 16))
    tl.store(out + tl.arange(0, 16), al.flip(al.sort(tile, dim=0, descending=True), 0))


@triton.jit
def vector_cores(x, out):
    share: tl.constexpr = 16 // al.sub_vec_num()
    offsets = al.sub_vec_id() * share + tl.arange(0, share)
    tl.store(out + offsets, tl.load(x + offsets))


@pytest.mark.parametrize(
    ("kernel", "linalg"),
    [
        (slices, ["tensor.extract_slice", "tensor.insert_slice"]),
        (elements, ["tensor.extract "]),
        (parallel_loop, ["scf.for"]),
        (hints, ["annotation.mark"]),
        (block_sync, ["hivm.hir.sync_block_set", "hivm.hir.sync_block_wait", "hivm.hir.sync_block"]),
        (order_changes, ["triton_sort", "triton_flip"]),
        (vector_cores, ["tdist_sub_vec_id"]),
    ],
    ids=lambda value: value.__name__ if isinstance(value, triton.JITFunction) else "",
)
def test_extension_functions_reach_linalg(
    compile_kernel: KernelCompiler, kernel: triton.JITFunction, linalg: list[str]
) -> None:
    compiled = compile_kernel(kernel, {"x": "*fp32", "out": "*fp32"})
    for operation in linalg:
        assert operation in compiled.linalg


@triton.jit
def copies(x, out):
    al.copy(x, out)


@triton.jit
def fixpipes(x, out):
    al.fixpipe(x, out, al.FixpipeDMAMode.NZ2ND)


@triton.jit
def custom_op(x, out):
    al.custom("my_op", x, out)


@triton.jit
def debug_barrier(x, out):
    al.debug_barrier(al.SYNC_IN_VF.VV_ALL)


@triton.jit
def sync_with_pipes(x, out):
    al.sync_block_set("cube", "vector", 5, al.PIPE.PIPE_MTE1, al.PIPE.PIPE_MTE3)


@triton.jit
def cube_root(x, out):
    tl.store(out, libdevice.cbrt(tl.load(x)))


@triton.jit
def truncate(x, out):
    tl.store(out, libdevice.trunc(tl.load(x)))


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (copies, "copy"),
        (fixpipes, "fixpipe"),
        (custom_op, "custom"),
        (debug_barrier, "debug_barrier"),
        (sync_with_pipes, "sync_block_set: sender_pipe and receiver_pipe"),
        (cube_root, "libdevice.cbrt"),
        (truncate, "libdevice.trunc"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, triton.JITFunction) else "",
)
def test_what_cannot_be_given_says_so_by_name(
    compile_kernel: KernelCompiler, kernel: triton.JITFunction, name: str
) -> None:
    error = compile_kernel.error(kernel, {"x": "*fp32", "out": "*fp32"})
    message = str(error.error_message)
    assert "NotImplementedError" in message
    assert name in message
    assert "triton-ascend 3.2.0" in message
    assert isinstance(error.__cause__, NotImplementedError)


def test_names_outside_of_kernels() -> None:
    with pytest.raises(NotImplementedError, match="register_custom_op"):
        al.register_custom_op(object)
    with pytest.raises(AttributeError, match="no_such_function"):
        libdevice.no_such_function  # noqa: B018
    assert {"exp", "tanh", "atan2", "cbrt"} <= set(dir(libdevice))
    for name in al.__all__:
        assert hasattr(al, name)


@triton.jit
def math(x, out):
    value = tl.load(x + tl.arange(0, 16))
    value = libdevice.tanh(libdevice.exp(value)) + libdevice.atan2(value, value)
    value += tl.where(libdevice.isnan(value), libdevice.rint(value), libdevice.pow(value, value))
    tl.store(out + tl.arange(0, 16), value)


def test_libdevice_functions_reach_linalg(compile_kernel: KernelCompiler) -> None:
    compiled = compile_kernel(math, {"x": "*fp32", "out": "*fp32"})
    for operation in ("math.exp", "tanh", "powf"):
        assert operation in compiled.linalg


@triton.jit
def use_of_slices(x, out):
    tile = tl.load(x + tl.arange(0, 16))
    tile = al.insert_slice(tile, al.extract_slice(tile, (8,), (4,), (1,)), (2,), (4,), (1,))
    al.compile_hint(tile, "bitwise_mask")
    tl.store(out + tl.arange(0, 16), al.flip(tile, 0))
    for i in al.parallel(0, 16, bind_sub_block=True):
        tl.store(out + 16 + i, al.get_element(tile, (i,)))
    share: tl.constexpr = 16 // al.sub_vec_num()
    lanes = al.sub_vec_id() * share + tl.arange(0, share)
    tl.store(out + 32 + lanes, al.sort(tl.load(x + lanes), dim=0, descending=True))


def test_extension_functions_have_their_values_on_simulated_npus() -> None:
    x = torch.tensor([5.0, 3, 1, 4, 15, 9, 2, 6, 53, 58, 97, 93, 23, 84, 62, 64])
    out = torch.zeros(48).npu()
    use_of_slices[(1,)](x.npu(), out)
    tile = x.clone()
    tile[2:6] = x[8:12]
    assert torch.equal(out.cpu(), torch.cat([tile.flip(0), tile, x.sort(descending=True).values]))
