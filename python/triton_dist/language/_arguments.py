"""Checks what a kernel passes to a primitive and turns it into operands.

Every check raises TypeError or ValueError; Triton wraps it in a CompilationError that shows the
line of the call. Messages name call, argument, value and what is allowed.
"""

from __future__ import annotations

from typing import Any

from triton.language import core

from ._frontend import Emitter

_INT32_MAX = 2**31 - 1


def constant(value: Any) -> Any:
    """The Python value of a constexpr; anything else as it is."""
    return value.value if isinstance(value, core.constexpr) else value


def shown(value: Any) -> str:
    """``value`` as messages show it: its type for a tensor, itself for a constant."""
    plain = constant(value)
    return f"of type {plain.type}" if isinstance(plain, core.tensor) else repr(plain)


def is_block_pointer(value: Any) -> bool:
    """Whether ``value`` comes from ``tl.make_block_ptr``."""
    return isinstance(value, core.tensor) and value.type.is_ptr() and bool(value.type.element_ty.is_block())


def pointer(call: str, argument: str, value: Any) -> core.tensor:
    """``value`` if it is a scalar pointer.

    Raises:
        TypeError: it is anything else.
    """
    what = f"{call}: {argument} is {shown(value)}"
    if not isinstance(value, core.tensor):
        raise TypeError(f"{what}; it must be a pointer, as a tensor argument of the kernel is")
    if is_block_pointer(value):
        raise TypeError(
            f"{what}, a block pointer; it must be a scalar pointer: pass the base that tl.make_block_ptr was given"
        )
    if value.type.is_block() and value.type.scalar.is_ptr():
        raise TypeError(
            f"{what}, a tensor of pointers; it must be a scalar pointer: pass the base and add "
            "the offsets to the result"
        )
    if not value.type.is_ptr():
        raise TypeError(f"{what}; it must be a scalar pointer")
    return value


def word_pointer(
    call: str, argument: str, value: Any, allowed: tuple[core.dtype, ...], *, written: bool
) -> core.tensor:
    """``value`` if it is a scalar pointer to one of the integer types ``allowed``.

    Raises:
        TypeError: it is not, or ``written`` and it points to constants.
    """
    checked = pointer(call, argument, value)
    word = checked.type.element_ty
    if word not in allowed:
        names = ", ".join(str(t) for t in allowed)
        raise TypeError(f"{call}: {argument} points to {word}; it must point to one of {names}")
    if written and checked.type.is_const():
        raise TypeError(f"{call}: {argument} points to constants; {call} writes there")
    return checked


def integer(
    emit: Emitter,
    call: str,
    argument: str,
    value: Any,
    type_: core.dtype = core.int32,
    *,
    least: int | None = None,
    most: int | None = None,
) -> core.tensor:
    """``value`` as a scalar of ``type_``: a constant that fits, or a scalar integer converted.

    Args:
        least, most: bounds of a constant; by default what ``type_`` holds, signed or not.

    Raises:
        TypeError: it is neither.
        ValueError: a constant out of its bounds.
    """
    plain = constant(value)
    if isinstance(plain, int) and not isinstance(plain, bool):
        bits = type_.int_bitwidth
        low = -(1 << (bits - 1)) if least is None else least
        high = (1 << bits) - 1 if most is None else most
        if not low <= plain <= high:
            raise ValueError(f"{call}: {argument} is {plain}; it must be from {low} to {high}")
        return emit.integer(plain, type_)
    scalar = isinstance(plain, core.tensor) and not plain.type.is_block()
    if not scalar or not plain.type.is_int() or plain.type.is_bool():
        raise TypeError(f"{call}: {argument} is {shown(value)}; it must be an integer, constant or scalar")
    return emit.cast(plain, type_)


def rank(emit: Emitter, call: str, argument: str, value: Any) -> core.tensor:
    """A PE number as int32; a constant must not be negative."""
    return integer(emit, call, argument, value, least=0, most=_INT32_MAX)


def count(emit: Emitter, call: str, argument: str, value: Any) -> core.tensor:
    """A number of things (words, bytes) as int32; a constant must not be negative."""
    return integer(emit, call, argument, value, least=0, most=_INT32_MAX)
