"""`triton.language.extra.cann.extension`: what Ascend adds to Triton's language, for triton-ascend 3.2.0.

Names and semantics are those of triton-ascend's documentation. Most functions are in the 3.2.0 wheel under another
name. `sub_vec_id` and `sub_vec_num` are ours. What 3.2.0 cannot express raises NotImplementedError when it is called,
at the kernel's line.
"""

from __future__ import annotations

from typing import Any

from triton.language import core
from triton.language.core import builtin, is_builtin
from triton.triton_patch.language import core as _stock
from triton.triton_patch.language.standard import atan2, finitef, isfinited

from triton_dist.language._frontend import Emitter, interpretable, primitive
from triton_dist.runtime import backend
from triton_dist.shims.cann._not_given import NotGiven


def _not_given(name: str) -> NotGiven:
    return NotGiven(f"{__name__}.{name}", "triton-ascend 3.2.0 cannot express it, later releases can")


CORE = _not_given("CORE")
FixpipeDMAMode = _not_given("FixpipeDMAMode")
FixpipeDualDstMode = _not_given("FixpipeDualDstMode")
FixpipePreQuantMode = _not_given("FixpipePreQuantMode")
FixpipePreReluMode = _not_given("FixpipePreReluMode")
MODE = _not_given("MODE")
PIPE = _not_given("PIPE")
SYNC_IN_VF = _not_given("SYNC_IN_VF")
ascend_address_space = _not_given("ascend_address_space")
copy = _not_given("copy")
copy_from_ub_to_l1 = _not_given("copy_from_ub_to_l1")
custom = _not_given("custom")
custom_semantic = _not_given("custom_semantic")
debug_barrier = _not_given("debug_barrier")
fixpipe = _not_given("fixpipe")
register_custom_op = _not_given("register_custom_op")
scatter_ub_to_out = _not_given("scatter_ub_to_out")
scope = _not_given("scope")


cast = interpretable(_stock.cast)
compile_hint = interpretable(_stock.compile_hint)
extract_slice = interpretable(_stock.extract_slice)
flip = interpretable(_stock.flip)
gather_out_to_ub = interpretable(_stock.gather_out_to_ub)
get_element = interpretable(_stock.get_element)
index_put = interpretable(_stock.index_put)
index_select_simd = interpretable(_stock.index_select_simd)
insert_slice = interpretable(_stock.insert_slice)
multibuffer = interpretable(_stock.multibuffer)
sort = interpretable(_stock.sort)
sync_block_all = interpretable(_stock.sync_block_all)
parallel = _stock.parallel


class int64(int):  # noqa: N801  (the name is triton-ascend's)
    """A Python integer that a custom op takes as 64 bits wide."""


@primitive
def sub_vec_id(emit: Emitter) -> core.tensor:
    """Which vector core of its AI core this is, int32: 0 and 1 in kernels with a dot, 0 in others."""
    return emit.extern("tdist_sub_vec_id", [emit.integer(0, core.int32)], core.int32, pure=True)


@primitive
def sub_vec_num(emit: Emitter) -> core.constexpr:
    """How many vector cores share the work of a program, a constant: 1, for kernels without a dot.

    Simulated NPUs refuse it in a kernel with a dot, where it would be 2: the constant is made before that is known.

    Raises:
        NotImplementedError: the backend is not `sim`; triton-ascend 3.2.0 cannot ask real NPUs.
    """
    if backend.active() != "sim":
        raise NotImplementedError(f"{__name__}.sub_vec_num is not available for NPUs in triton-ascend 3.2.0")
    # Not pure, so that it is still there when the compiler knows what kind of kernel this is.
    emit.extern("tdist_sub_vec_num", [emit.integer(0, core.int32)], core.int32, pure=False)
    return core.constexpr(1)


def _sync_pair(name: str, emit: Emitter, sender: Any, receiver: Any, event_id: Any, pipes: tuple[Any, Any]) -> None:
    if pipes != (None, None):
        raise NotImplementedError(
            f"{name}: sender_pipe and receiver_pipe are not available in triton-ascend 3.2.0: leave them out"
        )
    getattr(_stock, name)(sender, receiver, event_id, _builder=emit.builder)


@primitive
def sync_block_set(
    emit: Emitter, sender: Any, receiver: Any, event_id: Any, sender_pipe: Any = None, receiver_pipe: Any = None
) -> None:
    """Raise event `event_id` (0 to 15) from `sender` to `receiver`, `"cube"` or `"vector"`."""
    _sync_pair("sync_block_set", emit, sender, receiver, event_id, (sender_pipe, receiver_pipe))


@primitive
def sync_block_wait(
    emit: Emitter, sender: Any, receiver: Any, event_id: Any, sender_pipe: Any = None, receiver_pipe: Any = None
) -> None:
    """Wait in `receiver` for event `event_id` (0 to 15) of `sender`."""
    _sync_pair("sync_block_wait", emit, sender, receiver, event_id, (sender_pipe, receiver_pipe))


__all__ = [
    "CORE",
    "MODE",
    "PIPE",
    "SYNC_IN_VF",
    "FixpipeDMAMode",
    "FixpipeDualDstMode",
    "FixpipePreQuantMode",
    "FixpipePreReluMode",
    "ascend_address_space",
    "atan2",
    "builtin",
    "cast",
    "compile_hint",
    "copy",
    "copy_from_ub_to_l1",
    "custom",
    "custom_semantic",
    "debug_barrier",
    "extract_slice",
    "finitef",
    "fixpipe",
    "flip",
    "gather_out_to_ub",
    "get_element",
    "index_put",
    "index_select_simd",
    "insert_slice",
    "int64",
    "is_builtin",
    "isfinited",
    "multibuffer",
    "parallel",
    "register_custom_op",
    "scatter_ub_to_out",
    "scope",
    "sort",
    "sub_vec_id",
    "sub_vec_num",
    "sync_block_all",
    "sync_block_set",
    "sync_block_wait",
]
