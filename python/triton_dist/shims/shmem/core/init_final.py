"""Joining and leaving a job."""

from __future__ import annotations

from .._lifecycle import (
    aclshmem_finalize,
    aclshmem_get_unique_id,
    aclshmem_info_get_version,
    aclshmemx_finalize,
    aclshmemx_init_attr,
    aclshmemx_set_attr_uniqueid_args,
)
from .._types import InitAttr, InitMode, UniqueId
from .utils import AclshmemInvalid, _validate_instance_id, in_this_layers_errors, integer

UniqueID = UniqueId

_INT_MAX = (1 << 31) - 1
_INT64_MAX = (1 << 63) - 1


def get_version() -> str:
    """`libaclshmem_version=` and the version."""
    major, minor = aclshmem_info_get_version()
    return f"libaclshmem_version={major}.{minor}"


def get_unique_id(empty: bool = False) -> bytes:
    """A new unique id. One rank makes it and sends it to all. `empty` has no meaning."""
    return aclshmem_get_unique_id()


def init(
    device: int | None = None,
    uid: UniqueId | bytes | None = None,
    rank: int | None = None,
    nranks: int | None = None,
    mpi_comm: object = None,
    initializer_method: str = "",
    mem_size: int | None = None,
    instance_id: int = 0,
) -> None:
    """Joins, as rank `rank` of `nranks`, the job whose unique id is `uid`; collective.

    Args:
        device: no meaning.
        uid: the unique id that one rank made.
        rank: number of this process, from 0.
        nranks: number of processes.
        mpi_comm: no meaning.
        initializer_method: "uid".
        mem_size: symmetric heap of each process, in bytes.
        instance_id: number of the instance; a process is in one job at a time on simulated NPUs.

    Raises:
        AclshmemInvalid: an argument is missing or not possible.
        AclshmemError: the ranks could not meet.
    """
    if initializer_method != "uid":
        raise AclshmemInvalid(f"initializer_method is {initializer_method!r}: it must be 'uid'")
    given = {"uid": uid, "rank": rank, "nranks": nranks, "mem_size": mem_size}
    missing = [name for name, value in given.items() if value is None]
    if missing:
        raise AclshmemInvalid(f"init needs {', '.join(missing)}")
    size = integer(nranks, "nranks", 1, _INT_MAX)
    number = integer(rank, "rank", 0, size - 1)
    heap_bytes = integer(mem_size, "mem_size", 1, _INT64_MAX)
    _validate_instance_id(instance_id)
    with in_this_layers_errors():
        if isinstance(uid, (bytes, bytearray, memoryview)):
            uid = UniqueId.from_bytes(bytes(uid))
        if not isinstance(uid, UniqueId):
            raise AclshmemInvalid(f"uid must be a UniqueID or its bytes, not {uid!r}")
        attributes = InitAttr()
        attributes.instance_id = instance_id
        aclshmemx_set_attr_uniqueid_args(number, size, heap_bytes, uid, attributes)
        aclshmemx_init_attr(InitMode.UNIQUEID, attributes)


def finalize(instance_id: int | None = None) -> None:
    """Leaves the job; collective.

    Raises:
        AclshmemInvalid: `instance_id` is not possible.
    """
    if instance_id is not None:
        _validate_instance_id(instance_id)
    with in_this_layers_errors():
        if instance_id is None:
            aclshmem_finalize()
        else:
            aclshmemx_finalize(instance_id)
