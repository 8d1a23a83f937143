"""aclshmem's device functions (``from triton_dist.language.extra import libshmem_device``).

Source of their semantics: the documentation and device headers of aclshmem. Sizes are bytes, signal
words int32, PEs are numbered from 0. All functions raise TypeError or ValueError, shown by Triton
at the line of the call, for arguments of a wrong type, negative constant PEs or sizes, and unknown
constants; outside of a kernel they raise RuntimeError.
"""

from __future__ import annotations

from typing import Any

from triton.language import core

from .. import _arguments as arguments
from .._frontend import Emitter, primitive
from .._primitives import symmetric_address

SIGNAL_SET = core.constexpr(0)
SIGNAL_ADD = core.constexpr(1)

CMP_EQ = core.constexpr(0)
CMP_NE = core.constexpr(1)
CMP_GT = core.constexpr(2)
CMP_GE = core.constexpr(3)
CMP_LT = core.constexpr(4)
CMP_LE = core.constexpr(5)


def _count_call(emit: Emitter, symbol: str, operand: core.tensor) -> core.tensor:
    return emit.extern(symbol, [operand], core.int32, pure=True)


def _order(emit: Emitter, symbol: str) -> None:
    emit.extern(symbol, [emit.integer(0, core.int32)], core.int32)


def _one_of(emit: Emitter, call: str, argument: str, value: Any, most: int) -> core.tensor:
    return arguments.integer(emit, call, argument, value, least=0, most=most)


def _signal_word(call: str, argument: str, value: Any, *, written: bool) -> core.tensor:
    return arguments.word_pointer(call, argument, value, (core.int32,), written=written)


@primitive
def my_pe(emit: Emitter) -> core.tensor:
    """Number of this PE, int32."""
    return _count_call(emit, "tdist_my_pe", emit.integer(-1, core.int32))


@primitive
def n_pes(emit: Emitter) -> core.tensor:
    """Number of PEs, int32."""
    return _count_call(emit, "tdist_n_pes", emit.integer(-1, core.int32))


@primitive
def team_my_pe(emit: Emitter, team: Any) -> core.tensor:
    """Number of this PE in ``team`` (integer), int32."""
    return _count_call(emit, "tdist_team_my_pe", arguments.integer(emit, "team_my_pe", "team", team))


@primitive
def team_n_pes(emit: Emitter, team: Any) -> core.tensor:
    """Number of PEs in ``team`` (integer), int32."""
    return _count_call(emit, "tdist_team_n_pes", arguments.integer(emit, "team_n_pes", "team", team))


@primitive
def remote_ptr(emit: Emitter, ptr: Any, pe: Any) -> core.tensor:
    """Pointer to the object on ``pe`` that the scalar pointer ``ptr`` points to here."""
    return symmetric_address(emit, "remote_ptr", ptr, pe, "pe")


@primitive
def barrier_all(emit: Emitter) -> None:
    """Complete this program's puts and wait until all cores of all PEs are here."""
    _order(emit, "tdist_barrier_all")


@primitive
def barrier_all_vec(emit: Emitter) -> None:
    """``barrier_all`` for vector cores only."""
    _order(emit, "tdist_barrier_all_vec")


@primitive
def quiet(emit: Emitter) -> None:
    """Complete all earlier puts and gets of this program, ``_nbi`` ones included."""
    _order(emit, "tdist_quiet")


@primitive
def fence(emit: Emitter) -> None:
    """Deliver earlier puts to each PE before later puts to the same PE."""
    _order(emit, "tdist_fence")


@primitive
def int_p(emit: Emitter, dest: Any, value: Any, pe: Any) -> None:
    """Store the integer ``value`` in the int32 word of ``pe`` that ``dest`` points to here."""
    target = _signal_word("int_p", "dest", dest, written=True)
    emit.extern(
        "tdist_int_p",
        [
            emit.address(target),
            arguments.integer(emit, "int_p", "value", value),
            arguments.rank(emit, "int_p", "pe", pe),
        ],
        core.int32,
    )


@primitive
def signal_op(emit: Emitter, sig_addr: Any, signal: Any, sig_op: Any, pe: Any) -> None:
    """Set, or add to, the int32 signal word of ``pe`` that ``sig_addr`` points to here.

    ``signal`` is an integer, ``sig_op`` is SIGNAL_SET or SIGNAL_ADD.
    """
    word = _signal_word("signal_op", "sig_addr", sig_addr, written=True)
    emit.extern(
        "tdist_signal_op",
        [
            emit.address(word),
            arguments.integer(emit, "signal_op", "signal", signal),
            _one_of(emit, "signal_op", "sig_op", sig_op, most=SIGNAL_ADD.value),
            arguments.rank(emit, "signal_op", "pe", pe),
        ],
        core.int32,
    )


@primitive
def signal_wait_until(emit: Emitter, sig_addr: Any, cmp: Any, cmp_val: Any) -> core.tensor:
    """Block until the int32 word here compares with ``cmp_val`` as asked; the value seen, int32.

    ``cmp`` is one of CMP_EQ, CMP_NE, CMP_GT, CMP_GE, CMP_LT, CMP_LE; ``cmp_val`` an integer.
    """
    word = _signal_word("signal_wait_until", "sig_addr", sig_addr, written=False)
    return emit.extern(
        "tdist_signal_wait_until",
        [
            emit.address(word),
            _one_of(emit, "signal_wait_until", "cmp", cmp, most=CMP_LE.value),
            arguments.integer(emit, "signal_wait_until", "cmp_val", cmp_val),
        ],
        core.int32,
    )


def _copy(emit: Emitter, call: str, dest: Any, source: Any, nbytes: Any, pe: Any) -> None:
    emit.extern(
        f"tdist_{call}",
        [
            emit.address(_written(call, dest)),
            emit.address(arguments.pointer(call, "source", source)),
            arguments.count(emit, call, "nbytes", nbytes),
            arguments.rank(emit, call, "pe", pe),
        ],
        core.int32,
    )


def _written(call: str, dest: Any) -> core.tensor:
    target = arguments.pointer(call, "dest", dest)
    if target.type.is_const():
        raise TypeError(f"{call}: dest points to constants; {call} writes there")
    return target


@primitive
def putmem(emit: Emitter, dest: Any, source: Any, nbytes: Any, pe: Any) -> None:
    """Copy ``nbytes`` bytes from ``source`` here to the object of ``pe`` that is ``dest`` here."""
    _copy(emit, "putmem", dest, source, nbytes, pe)


@primitive
def putmem_nbi(emit: Emitter, dest: Any, source: Any, nbytes: Any, pe: Any) -> None:
    """``putmem`` that is complete only after ``quiet`` or a barrier; leave ``source`` alone."""
    _copy(emit, "putmem_nbi", dest, source, nbytes, pe)


@primitive
def getmem(emit: Emitter, dest: Any, source: Any, nbytes: Any, pe: Any) -> None:
    """Copy ``nbytes`` bytes from the object of ``pe`` that is ``source`` here to ``dest`` here."""
    _copy(emit, "getmem", dest, source, nbytes, pe)


@primitive
def getmem_nbi(emit: Emitter, dest: Any, source: Any, nbytes: Any, pe: Any) -> None:
    """``getmem`` that is complete only after ``quiet`` or a barrier."""
    _copy(emit, "getmem_nbi", dest, source, nbytes, pe)


def _put_and_signal(
    emit: Emitter,
    call: str,
    dest: Any,
    source: Any,
    nbytes: Any,
    sig_addr: Any,
    signal: Any,
    sig_op: Any,
    pe: Any,
) -> None:
    emit.extern(
        f"tdist_{call}",
        [
            emit.address(_written(call, dest)),
            emit.address(arguments.pointer(call, "source", source)),
            arguments.count(emit, call, "nbytes", nbytes),
            emit.address(_signal_word(call, "sig_addr", sig_addr, written=True)),
            arguments.integer(emit, call, "signal", signal),
            _one_of(emit, call, "sig_op", sig_op, most=SIGNAL_ADD.value),
            arguments.rank(emit, call, "pe", pe),
        ],
        core.int32,
    )


@primitive
def putmem_signal(
    emit: Emitter,
    dest: Any,
    source: Any,
    nbytes: Any,
    sig_addr: Any,
    signal: Any,
    sig_op: Any,
    pe: Any,
) -> None:
    """``putmem``, then ``signal_op(sig_addr, signal, sig_op, pe)`` once the data is there."""
    _put_and_signal(emit, "putmem_signal", dest, source, nbytes, sig_addr, signal, sig_op, pe)


@primitive
def putmem_signal_nbi(
    emit: Emitter,
    dest: Any,
    source: Any,
    nbytes: Any,
    sig_addr: Any,
    signal: Any,
    sig_op: Any,
    pe: Any,
) -> None:
    """``putmem_signal`` that returns at once; the signal still comes after the data."""
    _put_and_signal(emit, "putmem_signal_nbi", dest, source, nbytes, sig_addr, signal, sig_op, pe)
