"""The primitives of ``triton_dist.language``.

Source of their semantics: the public Triton-distributed documentation and its Ascend page, and the
documentation of aclshmem.

Everything travels through the stock compiler as an extern call on scalars. Pointers stay visible to
its pointer analysis: ``symm_at`` and ``consume_token`` add to the pointer a number of elements that
only the lowering knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from triton.language import core

from . import _arguments as arguments
from . import _words as words
from ._frontend import Emitter, primitive
from ._target import can_add_remotely, soc

SIGNAL_WORDS = (core.int32, core.uint32, core.int64, core.uint64)
"""What ``notify`` and ``wait`` can point to."""


def _width(word: core.dtype) -> core.dtype:
    return core.int32 if word.int_bitwidth == 32 else core.int64


def _axis(emit: Emitter, call: str, axis: Any) -> core.tensor:
    value = arguments.constant(axis)
    if value not in (-1, 0) or isinstance(value, bool):
        raise ValueError(f"{call}: axis is {arguments.shown(axis)}; it must be -1 or 0: PEs have one dimension")
    return emit.integer(-1, core.int32)


@primitive
def rank(emit: Emitter, axis: Any = -1) -> core.tensor:
    """Number of this PE, int32, from 0 to ``num_ranks() - 1``.

    Args:
        axis: -1 or 0, both mean the one dimension that PEs have.

    Raises:
        ValueError: another axis.
    """
    return emit.extern("tdist_my_pe", [_axis(emit, "rank", axis)], core.int32, pure=True)


@primitive
def num_ranks(emit: Emitter, axis: Any = -1) -> core.tensor:
    """Number of PEs of the job, int32.

    Args:
        axis: -1 or 0, both mean the one dimension that PEs have.

    Raises:
        ValueError: another axis.
    """
    return emit.extern("tdist_n_pes", [_axis(emit, "num_ranks", axis)], core.int32, pure=True)


def symmetric_address(emit: Emitter, call: str, ptr: Any, rank: Any, name: str) -> core.tensor:
    """What ``symm_at`` and aclshmem's ``remote_ptr`` share; ``name`` is the second argument's."""
    local = arguments.pointer(call, "ptr", ptr)
    pe = arguments.rank(emit, call, name, rank)
    element_bytes = max(1, local.type.element_ty.primitive_bitwidth // 8)
    delta = emit.extern(
        "tdist_delta",
        [emit.address(local), pe, emit.integer(element_bytes, core.int32)],
        core.int64,
    )
    return emit.offset(local, delta)


@primitive
def symm_at(emit: Emitter, ptr: Any, rank: Any) -> core.tensor:
    """Pointer to the object on PE ``rank`` that ``ptr`` points to here.

    Both PEs hold the symmetric object at the same offset of their heaps. Offsets may be added to
    ``ptr`` before the call or to the result after it.

    Args:
        ptr: scalar pointer into the symmetric heap of this PE, to elements of any type.
        rank: the PE, integer; a constant must not be negative.

    Returns:
        A pointer of the type of ``ptr``.

    Raises:
        TypeError: ``ptr`` is not a scalar pointer, ``rank`` not an integer.
        ValueError: a negative constant ``rank``.
    """
    return symmetric_address(emit, "symm_at", ptr, rank, "rank")


@primitive
def notify(
    emit: Emitter,
    ptr: Any,
    rank: Any,
    signal: Any = 1,
    sig_op: Any = "set",
    comm_scope: Any = "inter_node",
) -> None:
    """Set, or add to, a signal word of PE ``rank`` once all earlier stores are complete.

    Args:
        ptr: scalar pointer to the word here, in the symmetric heap: int32, uint32, int64, uint64.
        rank: the PE whose word changes, integer; a constant must not be negative.
        signal: integer, converted to the width of the word.
        sig_op: ``"set"`` or ``"add"``. Before Ascend950 an SoC adds to int32 words only.
        comm_scope: how far the PE may be: ``"gpu"``, ``"intra_node"`` or ``"inter_node"``.

    Raises:
        TypeError: an argument of another type.
        ValueError: an unknown word, a negative constant ``rank``, a constant ``signal`` that the
            word cannot hold, or an ``"add"`` that the SoC lacks.
    """
    target = arguments.word_pointer("notify", "ptr", ptr, SIGNAL_WORDS, written=True)
    word = target.type.element_ty
    op = words.number_of("notify", "sig_op", sig_op, words.SIG_OP)
    scope = words.number_of("notify", "comm_scope", comm_scope, words.COMM_SCOPE)
    if op == words.SIG_OP["add"] and not can_add_remotely(soc(emit), word):
        raise ValueError(
            f"notify: sig_op is 'add' and ptr points to {word}; {soc(emit)} adds to words of "
            "other PEs in int32 only: use int32 signals, or sig_op='set' with a word per producer"
        )
    width = _width(word)
    emit.extern(
        "tdist_notify_i64" if width == core.int64 else "tdist_notify_i32",
        [
            emit.address(target),
            arguments.rank(emit, "notify", "rank", rank),
            arguments.integer(emit, "notify", "signal", signal, width),
            emit.integer(op, core.int32),
            emit.integer(scope, core.int32),
        ],
        core.int32,
    )


@primitive
def wait(
    emit: Emitter,
    barrierPtrs: Any,
    numBarriers: Any,
    scope: Any,
    semantic: Any = None,
    waitValue: Any = 1,
    *,
    _semantic: Any = None,
) -> core.tensor:
    """Block until each of ``numBarriers`` signal words here equals ``waitValue``.

    Word *i* lies 64 * *i* bytes after ``barrierPtrs``, a cache line each: 16 elements of int32 or
    8 of int64 apart.

    Args:
        barrierPtrs: scalar pointer to the first word: int32, uint32, int64 or uint64.
        numBarriers: number of words, integer; a constant must not be negative.
        scope: who writes the words: ``"gpu"``, ``"cta"`` (or ``"block"``), ``"sys"``.
        semantic: ``"relaxed"``, ``"acquire"``, ``"release"`` or ``"acq_rel"``; may also be spelt
            ``_semantic``.
        waitValue: integer, converted to the width of the word.

    Returns:
        An int32 token for :func:`consume_token`.

    Raises:
        TypeError: an argument of another type, no semantic, or both spellings of it.
        ValueError: an unknown word, a negative constant ``numBarriers``, or a constant
            ``waitValue`` that the word cannot hold.
    """
    if semantic is not None and _semantic is not None:
        raise TypeError("wait: semantic is given twice, as semantic and as _semantic")
    asked = _semantic if semantic is None else semantic
    first = arguments.word_pointer("wait", "barrierPtrs", barrierPtrs, SIGNAL_WORDS, written=False)
    width = _width(first.type.element_ty)
    return emit.extern(
        "tdist_wait_i64" if width == core.int64 else "tdist_wait_i32",
        [
            emit.address(first),
            arguments.count(emit, "wait", "numBarriers", numBarriers),
            arguments.integer(emit, "wait", "waitValue", waitValue, width),
            emit.integer(words.number_of("wait", "scope", scope, words.SCOPE), core.int32),
            emit.integer(words.number_of("wait", "semantic", asked, words.SEMANTIC), core.int32),
        ],
        core.int32,
    )


@primitive
def consume_token(emit: Emitter, value: Any, token: Any) -> core.tensor:
    """``value``, with nothing reached through the result moved above the wait of ``token``.

    Args:
        value: scalar pointer, tensor of pointers, block pointer, scalar or tensor of numbers.
        token: what :func:`wait` returned.

    Returns:
        A value of the type of ``value``.

    Raises:
        TypeError: ``value`` is none of these, or of an 8-bit float type; ``token`` is no integer.
    """
    zero = emit.extern("tdist_zero", [arguments.integer(emit, "consume_token", "token", token)], core.int64)
    if arguments.is_block_pointer(value):
        return emit.advance(value, emit.cast(zero, core.int32))
    plain = arguments.constant(value)
    if not isinstance(plain, (int, float, core.tensor)):
        raise TypeError(
            f"consume_token: value is {arguments.shown(value)}; it must be a pointer or a number, or a tensor of these"
        )
    result = emit.tensor(plain)
    element = result.type.scalar
    if element.is_ptr():
        return emit.offset(result, emit.like(zero, result))
    if element.is_fp8():
        raise TypeError(
            f"consume_token: value is {arguments.shown(value)}; 8-bit floats cannot be used: "
            "convert first, or consume the token on the pointer"
        )
    nothing = emit.like(emit.cast(zero, element), result)
    if element.is_floating():
        # x - 0.0 is x for every x; x + 0.0 would turn -0.0 into 0.0.
        return emit.binary("fsub", result, nothing)
    return emit.binary("or" if element.is_bool() else "add", result, nothing)


@primitive
def extern_call(
    emit: Emitter,
    lib_name: Any,
    lib_path: Any,
    args: Any,
    arg_type_symbol_dict: Any,
    is_pure: Any,
) -> core.tensor | None:
    """Call a symbol of a device library on scalars.

    A kernel cannot write a dict, so this is called from a function with
    ``@triton.language.core.extern`` that takes ``_builder`` and passes it on.

    Args:
        lib_name: name of the library.
        lib_path: path of the library, may be empty.
        args: scalars, numbers that become constants, and scalar pointers, of which the symbol gets the address.
        arg_type_symbol_dict: ``{(type, …): (symbol, result type)}``; the entry with the types of ``args`` is called,
            where a pointer counts as int64. A result type of None, ``()`` or ``tl.void`` means no result.
        is_pure: whether the call may be removed, merged or moved.

    Returns:
        The scalar result, or None.

    Raises:
        TypeError: no entry has the types of ``args``, or an argument is not a scalar.
    """
    values = [emit.tensor(arg) for arg in _sequence("extern_call", "args", args)]
    for position, value in enumerate(values):
        if value.type.is_block() or arguments.is_block_pointer(value):
            raise TypeError(f"extern_call: args[{position}] is of type {value.type}; it must be a scalar")
    operands = [emit.address(value) if value.type.is_ptr() else value for value in values]
    types = tuple(operand.type for operand in operands)
    entries = arguments.constant(arg_type_symbol_dict)
    if not isinstance(entries, Mapping):
        raise TypeError(f"extern_call: arg_type_symbol_dict is {entries!r}; it must be a dict")
    if types not in entries:
        known = ", ".join(_shown(key) for key in entries)
        raise TypeError(f"extern_call: args are {_shown(types)}; arg_type_symbol_dict has {known} (a pointer is int64)")
    symbol, result = entries[types]
    nothing = result is None or result == () or result == core.void
    handle = emit.extern(
        arguments.constant(symbol),
        operands,
        core.int32 if nothing else result,
        pure=bool(arguments.constant(is_pure)) and not nothing,
        library=str(arguments.constant(lib_name)),
        path=str(arguments.constant(lib_path)),
    )
    return None if nothing else handle


def _shown(types: Sequence[Any]) -> str:
    return "(" + ", ".join(str(type_) for type_ in types) + ")"


def _sequence(call: str, argument: str, value: Any) -> Sequence[Any]:
    plain = arguments.constant(value)
    if not isinstance(plain, (list, tuple)):
        raise TypeError(f"{call}: {argument} is {plain!r}; it must be a list")
    return plain
