"""Checks of plain arguments, with messages that name function, argument and value."""

from __future__ import annotations

import operator
import sys

from triton_dist.runtime import launches

from ._types import CmpOp, SignalOp


def integer(value: object, name: str, function: str) -> int:
    """`value` as an int. Raises TypeError unless it is an integer (an enumeration's member counts, a bool does not)."""
    if not isinstance(value, bool):
        try:
            return operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise TypeError(f"{function}: {name} must be an integer, not {value!r} ({type(value).__name__})")


def signal_value(value: object, function: str) -> int:
    """A value for a signal word, which has 32 bits."""
    number = integer(value, "signal", function)
    if not -(2**31) <= number < 2**31:
        raise ValueError(f"{function}: signal is {number}: signal words have 32 bits")
    return number


def signal_operation(value: object, function: str) -> SignalOp:
    """SIGNAL_SET or SIGNAL_ADD, given as such or by number."""
    number = integer(value, "sig_op", function)
    try:
        return SignalOp(number)
    except ValueError:
        raise ValueError(f"{function}: sig_op is {number}: it must be SIGNAL_SET (0) or SIGNAL_ADD (1)") from None


def comparison(value: object, function: str) -> CmpOp:
    """A comparison, given as such or by number."""
    number = integer(value, "cmp", function)
    try:
        return CmpOp(number)
    except ValueError:
        names = ", ".join(f"{member.name} ({member.value})" for member in CmpOp)
        raise ValueError(f"{function}: cmp is {number}: it must be one of {names}") from None


def stream_key(value: object, function: str) -> int | None:
    """The stream that `value` is the number of (Stream.npu_stream; 0: the default one), as launches know it.

    None where this process has no streams, as torch has not been imported: calls are made at once then.
    """
    number = integer(value, "stream", function)
    if number < 0:
        raise ValueError(f"{function}: stream is {number}: it must be the address of a stream, or 0")
    if "torch" not in sys.modules:
        return None
    return number or launches.default_stream()
