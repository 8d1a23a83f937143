"""Enumerations and attribute classes of the host API. Numbers are those of aclshmem's headers.

As with the real bindings, an attribute takes values of its own type only, and there are no others.
"""

from __future__ import annotations

import enum
import struct
from typing import Any, ClassVar

__all__ = [
    "CmpOp",
    "InitAttr",
    "InitMode",
    "InitStatus",
    "InstanceContext",
    "MemType",
    "OpEngineType",
    "OptionalAttr",
    "ProfData",
    "SignalOp",
    "TeamConfig",
    "UniqueId",
]

# What aclshmem waits by default, in seconds. Here it only decides where user code has set it.
_DEFAULT_TIMEOUT = 120


class OpEngineType(enum.IntEnum):
    """What moves data between NPUs. The simulator takes all of them; they differ on hardware only."""

    MTE = 0x01
    SDMA = 0x02
    ROCE = 0x04
    UDMA = 0x08


class InitStatus(enum.IntEnum):
    """How far initialisation has come."""

    NOT_INITIALIZED = 0
    SHM_CREATED = 1
    INITIALIZED = 2
    INVALID = 2**31 - 1


class InitMode(enum.IntEnum):
    """How the ranks of a job find each other."""

    DEFAULT = 1 << 0
    MPI = 1 << 1
    UNIQUEID = 1 << 3


class SignalOp(enum.IntEnum):
    """What an update does to a signal word."""

    SIGNAL_SET = 0
    SIGNAL_ADD = 1


class CmpOp(enum.IntEnum):
    """How a wait compares a word with a value."""

    CMP_EQ = 0
    CMP_NE = 1
    CMP_GT = 2
    CMP_GE = 3
    CMP_LT = 4
    CMP_LE = 5


class MemType(enum.IntEnum):
    """Which symmetric heap an allocation is in. The simulator has the device's only."""

    HOST_SIDE = 0
    DEVICE_SIDE = 1


class TypedAttributes:
    """Base of classes whose attributes are checked when they are set.

    `_kinds` names the type of each attribute; an integer type does not take booleans.
    """

    __slots__ = ()
    _kinds: ClassVar[dict[str, type]] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        kind = self._kinds.get(name)
        if kind is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            raise TypeError(
                f"{type(self).__name__}.{name} takes {_article(kind.__name__)}, not {value!r} ({type(value).__name__})"
            )
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._kinds)
        return f"{type(self).__name__}({values})"


def _article(word: str) -> str:
    return f"{'an' if word[0] in 'aeiouAEIOU' else 'a'} {word}"


class OptionalAttr(TypedAttributes):
    """Optional part of the initialisation attributes.

    Attributes:
        version: of the structure.
        data_op_engine_type: what moves data.
        shm_init_timeout: how long initialisation waits for all ranks, in seconds; where it is not set,
            TRITON_DIST_HEAP_TIMEOUT decides.
        shm_create_timeout: not used by the simulator, which makes heaps at initialisation.
        control_operation_timeout: not used by the simulator, which watches its peers instead.
        sockFd: not used by the simulator, which listens on a socket of its own.
    """

    __slots__ = (
        "version",
        "data_op_engine_type",
        "shm_init_timeout",
        "shm_create_timeout",
        "control_operation_timeout",
        "sockFd",
        "_init_timeout_set",
    )
    _kinds: ClassVar[dict[str, type]] = {
        "version": int,
        "data_op_engine_type": OpEngineType,
        "shm_init_timeout": int,
        "shm_create_timeout": int,
        "control_operation_timeout": int,
        "sockFd": int,
    }
    version: int
    data_op_engine_type: OpEngineType
    shm_init_timeout: int
    shm_create_timeout: int
    control_operation_timeout: int
    sockFd: int  # noqa: N815 - aclshmem's name
    _init_timeout_set: bool

    def __init__(self) -> None:
        self.version = 1
        self.data_op_engine_type = OpEngineType.MTE
        self.shm_init_timeout = _DEFAULT_TIMEOUT
        self.shm_create_timeout = _DEFAULT_TIMEOUT
        self.control_operation_timeout = _DEFAULT_TIMEOUT
        self.sockFd = -1
        self._init_timeout_set = False

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "shm_init_timeout":
            object.__setattr__(self, "_init_timeout_set", True)

    def init_timeout(self) -> int | None:
        """Seconds that user code has set for initialisation, or None."""
        return self.shm_init_timeout if self._init_timeout_set else None


class InitAttr(TypedAttributes):
    """Attributes of initialisation.

    Attributes:
        my_rank: number of this process, from 0.
        n_ranks: number of processes.
        ip_port: where rank 0 listens, `tcp://host:port` or `tcp6://[address]:port`; port 0 stands for the port of
            the instance in SHMEM_INSTANCE_PORT_RANGE.
        local_mem_size: symmetric heap of each process, in bytes.
        option_attr: the optional part.
        instance_id: from 0 to 254; a process has one instance at a time on simulated NPUs.
    """

    __slots__ = ("my_rank", "n_ranks", "ip_port", "local_mem_size", "option_attr", "instance_id", "_unique_id")
    _kinds: ClassVar[dict[str, type]] = {
        "my_rank": int,
        "n_ranks": int,
        "ip_port": str,
        "local_mem_size": int,
        "option_attr": OptionalAttr,
        "instance_id": object,
    }
    my_rank: int
    n_ranks: int
    ip_port: str
    local_mem_size: int
    option_attr: OptionalAttr
    instance_id: int
    _unique_id: UniqueId | None

    def __init__(self) -> None:
        self.my_rank = 0
        self.n_ranks = 0
        self.ip_port = ""
        self.local_mem_size = 0
        self.option_attr = OptionalAttr()
        self.instance_id = 0
        self._unique_id = None

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "instance_id":
            check_instance_id(value)
        super().__setattr__(name, value)


def check_instance_id(value: object) -> int:
    """Returns `value`. Raises ValueError unless it is an integer from 0 to 254."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 254:
        raise ValueError(f"instance_id is {value!r}: it must be an integer from 0 to 254")
    return value


class TeamConfig(TypedAttributes):
    """Configuration of a team.

    Attributes:
        num_contexts: how many contexts a team can run at once; kept, not used.
    """

    __slots__ = ("num_contexts",)
    _kinds: ClassVar[dict[str, type]] = {"num_contexts": int}
    num_contexts: int

    def __init__(self, num_contexts: int = 0) -> None:
        self.num_contexts = num_contexts


class UniqueId(TypedAttributes):
    """What the ranks of a job share to find each other: made by one, sent to all, 512 bytes as a message.

    Attributes:
        version: of the structure; says its size too.
        my_pe: number of the process that made it, or 0.
        n_pes: number of processes, or 0.
        internal: 500 bytes that mean something to the library only.
    """

    __slots__ = ("version", "my_pe", "n_pes", "internal")
    _kinds: ClassVar[dict[str, type]] = {"version": int, "my_pe": int, "n_pes": int, "internal": bytes}
    _LAYOUT: ClassVar[struct.Struct] = struct.Struct("=iii500s")
    _VERSION: ClassVar[int] = (1 << 16) + _LAYOUT.size
    version: int
    my_pe: int
    n_pes: int
    internal: bytes

    def __init__(self) -> None:
        self.version = self._VERSION
        self.my_pe = 0
        self.n_pes = 0
        self.internal = bytes(500)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "internal" and isinstance(value, bytes) and len(value) != 500:
            raise ValueError(f"UniqueId.internal has {len(value)} bytes: it must have 500")
        super().__setattr__(name, value)

    def to_bytes(self) -> bytes:
        """The 512 bytes to send."""
        return self._LAYOUT.pack(self.version, self.my_pe, self.n_pes, self.internal)

    @classmethod
    def from_bytes(cls, data: bytes) -> UniqueId:
        """The unique id that was sent as `data`.

        Raises:
            TypeError: `data` is no bytes.
            ValueError: it has not 512 of them.
        """
        if not isinstance(data, bytes):
            raise TypeError(f"a UniqueId is made from bytes, not from {_article(type(data).__name__)}")
        if len(data) != cls._LAYOUT.size:
            raise ValueError(f"a UniqueId has {cls._LAYOUT.size} bytes, not {len(data)}")
        result = cls()
        result.version, result.my_pe, result.n_pes, result.internal = cls._LAYOUT.unpack(data)
        return result


class InstanceContext:
    """The active instance, as it was when asked."""

    __slots__ = ("_id",)

    def __init__(self, id: int) -> None:  # noqa: A002 - aclshmem's name
        self._id = id

    @property
    def id(self) -> int:
        """Number of the instance."""
        return self._id

    def __repr__(self) -> str:
        return f"InstanceContext(id={self._id})"


class ProfData:
    """Cycles counted on an NPU. Simulated NPUs count none, so nobody gets one of these from the simulator."""
