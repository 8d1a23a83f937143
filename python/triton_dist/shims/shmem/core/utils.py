"""Buffers, the two errors of this layer, and checks of its arguments."""

from __future__ import annotations

import contextlib
import ctypes
import logging
from collections.abc import Iterator

from triton_dist.runtime import shmem_log

from .._lifecycle import aclshmemx_instance_ctx_get
from .._types import MemType as MemType
from .._types import check_instance_id

_ADDRESS_MAX = (1 << (8 * ctypes.sizeof(ctypes.c_void_p) - 1)) - 1
SIZE_MAX = (1 << (8 * ctypes.sizeof(ctypes.c_size_t))) - 1


class AclshmemError(Exception):
    """Something could not be done. `msg` says what and why."""

    def __init__(self, msg: str) -> None:
        super().__init__(msg)
        self.msg = msg

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.msg}>"


class AclshmemInvalid(Exception):  # noqa: N818 - aclshmem's name
    """An argument is not possible. `msg` says which and why."""

    def __init__(self, msg: str) -> None:
        super().__init__(msg)
        self.msg = msg

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.msg}>"


@contextlib.contextmanager
def in_this_layers_errors() -> Iterator[None]:
    """Turns errors of the functions on addresses into those of this layer."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise AclshmemInvalid(str(error)) from error
    except NotImplementedError:
        raise
    except RuntimeError as error:
        raise AclshmemError(str(error)) from error


def integer(value: object, name: str, least: int, most: int) -> int:
    """`value`. Raises AclshmemInvalid unless it is an integer from `least` to `most`; a bool is none."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise AclshmemInvalid(f"{name} is {value!r}: it must be an integer from {least} to {most}")
    return value


def stream_address(stream: int | None, none_allowed: bool = False) -> int:
    """The address of a stream; None is the default one where it is allowed."""
    if stream is None and none_allowed:
        return 0
    return integer(stream, "stream", 0, _ADDRESS_MAX)


def _validate_instance_id(instance_id: int) -> None:
    with in_this_layers_errors():
        check_instance_id(instance_id)


def active_instance() -> int:
    """Number of the active instance. Raises AclshmemError where this process is in no job."""
    context = aclshmemx_instance_ctx_get()
    if context is None:
        raise AclshmemError("there is no active instance: initialise shmem first")
    return context.id


class Buffer:
    """Memory, by address and length.

    One that is constructed describes memory of somebody else and cannot be freed. Those of `buffer`, `calloc` and
    `align` own theirs; a peer's view of one goes when it goes.

    Attributes:
        addr: address of the first byte.
        length: bytes.
        mem_type: heap that it is in.
    """

    __slots__ = ("addr", "length", "mem_type", "_owned", "_owner", "_instance_id", "_released")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, addr: int, length: int, mem_type: MemType = MemType.DEVICE_SIDE) -> None:
        self.addr = integer(addr, "addr", 1, _ADDRESS_MAX)
        self.length = integer(length, "length", 1, SIZE_MAX)
        if not isinstance(mem_type, MemType):
            raise TypeError(f"mem_type must be a MemType, not {mem_type!r}")
        self.mem_type = mem_type
        self._owned = False
        self._owner: Buffer | None = None
        self._instance_id: int | None = None
        self._released = False

    @property
    def owned(self) -> bool:
        """Whether this object may free the memory."""
        return self._owned

    @property
    def instance_id(self) -> int | None:
        """Instance that the memory is of; None for somebody else's memory."""
        return self._instance_id

    @property
    def release_called(self) -> bool:
        """Whether somebody has begun to free the memory."""
        return self._released or (self._owner is not None and self._owner.release_called)

    @classmethod
    def _owning(cls, addr: int, length: int, mem_type: MemType, instance_id: int) -> Buffer:
        result = cls(addr, length, mem_type)
        result._owned, result._instance_id = True, instance_id
        return result

    @classmethod
    def _borrowed(cls, addr: int, length: int, mem_type: MemType, owner: Buffer) -> Buffer:
        result = cls(addr, length, mem_type)
        result._owner, result._instance_id = owner, owner.instance_id
        return result

    def __repr__(self) -> str:
        return (
            f"Buffer(addr={self.addr:#x}, length={self.length}, mem_type={self.mem_type.name}, owned={self.owned}, "
            f"release_called={self.release_called})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Buffer):
            return NotImplemented
        return (self.addr, self.length, self.mem_type) == (other.addr, other.length, other.mem_type)


def usable(buffer: Buffer, name: str) -> Buffer:
    """`buffer`. Raises AclshmemInvalid unless it is one, not freed and of the active instance."""
    if not isinstance(buffer, Buffer):
        raise AclshmemInvalid(f"{name} must be a Buffer, not {buffer!r}")
    if buffer.release_called:
        raise AclshmemInvalid(f"{name} has been freed")
    if buffer.instance_id is not None and buffer.instance_id != active_instance():
        raise AclshmemInvalid(f"{name} is of instance {buffer.instance_id}, which is not the active one")
    return buffer


def setup_aclshmem_logger(log_level: str = "ERROR", log_file_path: str | None = None) -> None:
    """Has the logger `aclshmem` write to standard error, and to a file if one is named.

    Raises:
        ValueError: there is no such level.
    """
    level = logging.getLevelName(log_level.upper())
    if not isinstance(level, int):
        raise ValueError(f"log_level is {log_level!r}: it must be DEBUG, INFO, WARNING, ERROR or CRITICAL")
    logger = shmem_log.logger
    shmem_log.set_level(level)
    for handler in list(logger.handlers):
        if getattr(handler, "_of_setup", False):
            logger.removeHandler(handler)
            handler.close()
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    if log_file_path is not None:
        handlers.append(logging.FileHandler(log_file_path))
    for handler in handlers:
        handler.setFormatter(logging.Formatter("%(asctime)s %(process)d ACLSHMEM %(levelname)s: %(message)s"))
        handler._of_setup = True  # type: ignore[attr-defined]
        logger.addHandler(handler)
