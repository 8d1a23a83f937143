"""Copies of buffers between ranks, and signals. All is complete on return, whatever the stream."""

from __future__ import annotations

from .._rma import (
    aclshmemx_getmem_on_stream,
    aclshmemx_putmem_on_stream,
    aclshmemx_putmem_signal,
    aclshmemx_quiet_on_stream,
    aclshmemx_signal_op_on_stream,
)
from .._teams import pe_count
from .._types import CmpOp, SignalOp
from .._waits import aclshmemx_signal_wait_until_on_stream
from .utils import AclshmemInvalid, Buffer, in_this_layers_errors, integer, stream_address, usable

_SIGNAL_BYTES = 4


def put_signal(
    dst: Buffer,
    src: Buffer,
    signal_var: Buffer,
    signal_val: int,
    signal_operation: SignalOp,
    remote_pe: int,
    stream: object = None,
) -> None:
    """Copies `src` to rank `remote_pe`'s `dst`, then sets or adds `signal_val` on its int32 `signal_var`.

    `stream` has no meaning.

    Raises:
        AclshmemInvalid: an argument is not possible.
    """
    _check_transfer(dst, src, remote_pe)
    _check_signal(signal_var)
    _check_operation(signal_operation)
    with in_this_layers_errors():
        aclshmemx_putmem_signal(
            dst.addr, src.addr, src.length, signal_var.addr, signal_val, signal_operation, remote_pe
        )


def put(dst: Buffer, src: Buffer, remote_pe: int, stream: int | None = None) -> None:
    """Copies `src` to rank `remote_pe`'s `dst`.

    Raises:
        AclshmemInvalid: an argument is not possible.
    """
    _check_transfer(dst, src, remote_pe)
    address = stream_address(stream, none_allowed=True)
    with in_this_layers_errors():
        aclshmemx_putmem_on_stream(dst.addr, src.addr, src.length, remote_pe, address)


def get(dst: Buffer, src: Buffer, remote_pe: int, stream: int | None = None) -> None:
    """Copies rank `remote_pe`'s `src` to `dst`.

    Raises:
        AclshmemInvalid: an argument is not possible.
    """
    _check_transfer(dst, src, remote_pe)
    address = stream_address(stream, none_allowed=True)
    with in_this_layers_errors():
        aclshmemx_getmem_on_stream(dst.addr, src.addr, src.length, remote_pe, address)


def signal_op(
    signal_var: Buffer, signal_val: int, signal_operation: SignalOp, remote_pe: int, stream: int | None = None
) -> None:
    """Sets or adds `signal_val` on rank `remote_pe`'s int32 `signal_var`. A stream must be given (0: the default one).

    Raises:
        AclshmemInvalid: an argument is not possible.
    """
    _check_signal(signal_var)
    _check_pe(remote_pe)
    _check_operation(signal_operation)
    address = stream_address(stream)
    with in_this_layers_errors():
        aclshmemx_signal_op_on_stream(signal_var.addr, signal_val, signal_operation, remote_pe, address)


def signal_wait(signal_var: Buffer, signal_val: int, signal_operation: CmpOp, stream: int) -> None:
    """Waits until the own int32 `signal_var` compares with `signal_val`.

    Raises:
        AclshmemInvalid: an argument is not possible.
        AclshmemError: all other ranks have ended.
    """
    _check_signal(signal_var)
    if not isinstance(signal_operation, CmpOp):
        raise AclshmemInvalid(f"signal_operation must be a ComparisonType, not {signal_operation!r}")
    address = stream_address(stream)
    with in_this_layers_errors():
        aclshmemx_signal_wait_until_on_stream(signal_var.addr, signal_operation, signal_val, address)


def quiet(stream: int) -> None:
    """Waits until everything that this rank has sent is complete.

    Raises:
        AclshmemInvalid: the stream is not possible.
    """
    address = stream_address(stream)
    with in_this_layers_errors():
        aclshmemx_quiet_on_stream(address)


def _check_transfer(dst: Buffer, src: Buffer, remote_pe: int) -> None:
    usable(dst, "dst")
    usable(src, "src")
    if dst.length < src.length:
        raise AclshmemInvalid(f"dst has {dst.length} bytes, fewer than src with {src.length}")
    _check_pe(remote_pe)


def _check_pe(remote_pe: int) -> None:
    with in_this_layers_errors():
        integer(remote_pe, "remote_pe", 0, pe_count() - 1)


def _check_signal(signal_var: Buffer) -> None:
    usable(signal_var, "signal_var")
    if signal_var.length < _SIGNAL_BYTES or signal_var.addr % _SIGNAL_BYTES:
        raise AclshmemInvalid(
            f"signal_var has {signal_var.length} bytes at {signal_var.addr:#x}: a signal word has {_SIGNAL_BYTES}, "
            f"at a multiple of {_SIGNAL_BYTES}"
        )


def _check_operation(signal_operation: SignalOp) -> None:
    if not isinstance(signal_operation, SignalOp):
        raise AclshmemInvalid(f"signal_operation must be a SignalOp, not {signal_operation!r}")
