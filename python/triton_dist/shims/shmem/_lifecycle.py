"""Joining and leaving a job, and what can be asked or set outside of one."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator

from triton_dist import __version__, env
from triton_dist.runtime import job, session, shmem_log

from ._arguments import integer
from ._types import InitAttr, InitMode, InitStatus, InstanceContext, OpEngineType, UniqueId, check_instance_id

__all__ = [
    "aclshmem_finalize",
    "aclshmem_get_unique_id",
    "aclshmem_global_exit",
    "aclshmem_info_get_name",
    "aclshmem_info_get_version",
    "aclshmem_init",
    "aclshmem_init_using_unique_id",
    "aclshmemx_finalize",
    "aclshmemx_init_attr",
    "aclshmemx_init_status",
    "aclshmemx_instance_ctx_get",
    "aclshmemx_instance_ctx_set",
    "aclshmemx_set_attr_uniqueid_args",
    "aclshmemx_set_qp_num",
    "get_ffts_config",
    "set_conf_store_tls",
    "set_conf_store_tls_key",
    "set_extern_logger",
    "set_log_level",
]

logger = shmem_log.logger

# aclshmem's levels, DEBUG to FATAL, in Python's.
_LEVELS = tuple(shmem_log.LEVELS.values())
_UID_PREFIX = b"triton-dist:"

# The instance that the job of this process is; 0 where it is in none.
_instance = 0


def aclshmem_init(attributes: InitAttr) -> int:
    """Joins the job that `attributes` describes; collective. Returns 0.

    Raises:
        ValueError: an attribute is not possible.
        RuntimeError: the ranks could not meet (says which and why), or this process is in a job already.
    """
    return aclshmemx_init_attr(InitMode.DEFAULT, attributes)


def aclshmemx_init_attr(bootstrap_flags: InitMode, attributes: InitAttr) -> int:
    """As `aclshmem_init`; with InitMode.UNIQUEID the ranks meet by the unique id in `attributes`."""
    global _instance
    if not isinstance(attributes, InitAttr):
        raise TypeError(f"attributes must be an InitAttr, not {attributes!r}")
    if bootstrap_flags == InitMode.MPI:
        raise NotImplementedError("InitMode.MPI: the simulator has no MPI; use InitMode.DEFAULT or InitMode.UNIQUEID")
    with _logging_errors("initialisation"):
        if job.current() is not None and attributes.instance_id != _instance:
            raise NotImplementedError(
                f"instance_id {attributes.instance_id}: a process is in one job at a time on simulated NPUs, and this "
                f"one is in that of instance {_instance}"
            )
        unique_id = attributes._unique_id
        if bootstrap_flags == InitMode.UNIQUEID:
            if unique_id is None:
                raise ValueError("InitMode.UNIQUEID needs attributes of aclshmemx_set_attr_uniqueid_args")
            endpoint = session.endpoint_of_unique_id(_text_of(unique_id))
        else:
            endpoint = session.endpoint(attributes.ip_port, attributes.instance_id)
        timeout = attributes.option_attr.init_timeout()
        logger.info("rank %d of %d initialises shmem at %s", attributes.my_rank, attributes.n_ranks, endpoint)
        job.attach(
            endpoint,
            attributes.my_rank,
            attributes.n_ranks,
            attributes.local_mem_size,
            env.TRITON_DIST_HEAP_TIMEOUT.get() if timeout is None else float(timeout),
        )
    _instance = attributes.instance_id
    return 0


@contextlib.contextmanager
def _logging_errors(what: str) -> Iterator[None]:
    shmem_log.configure()
    try:
        yield
    except Exception as error:
        logger.error("%s failed: %s: %s", what, type(error).__name__, error)
        raise


def aclshmem_get_unique_id() -> bytes:
    """A new unique id, 512 bytes. Rank 0 makes it and sends it to all.

    It says where rank 0 listens: see `triton_dist.runtime.session.new_unique_id` for the variables that decide.

    Raises:
        ValueError: one of these variables is malformed, or its interface is unknown or has no such address.
        RuntimeError: the host name in SHMEM_UID_SESSION_ID is unknown.
    """
    unique_id = UniqueId()
    with _logging_errors("a unique id"):
        unique_id.internal = (_UID_PREFIX + session.new_unique_id().encode()).ljust(500, b"\0")
    return unique_id.to_bytes()


def aclshmem_init_using_unique_id(mype: int, npes: int, mem_size: int, uid: bytes) -> int:
    """Joins, as rank `mype` of `npes`, the job whose unique id is `uid`; collective. Returns 0.

    `mem_size` is the symmetric heap of each rank, in bytes.
    """
    attributes = InitAttr()
    aclshmemx_set_attr_uniqueid_args(mype, npes, mem_size, UniqueId.from_bytes(uid), attributes)
    return aclshmemx_init_attr(InitMode.UNIQUEID, attributes)


def aclshmemx_set_attr_uniqueid_args(my_pe: int, n_pes: int, local_mem_size: int, uid: UniqueId, attr: InitAttr) -> int:
    """Fills in `attr` for initialisation by unique id. Returns 0."""
    if not isinstance(uid, UniqueId):
        raise TypeError(f"uid must be a UniqueId, not {uid!r}")
    session.endpoint_of_unique_id(_text_of(uid))
    attr.my_rank, attr.n_ranks, attr.local_mem_size = my_pe, n_pes, local_mem_size
    attr._unique_id = UniqueId.from_bytes(uid.to_bytes())
    return 0


def _text_of(unique_id: UniqueId) -> str:
    """What `session.new_unique_id` has put into a unique id. Raises ValueError where that cannot be."""
    text = unique_id.internal.rstrip(b"\0")
    if not text.startswith(_UID_PREFIX) or not text.isascii():
        raise ValueError("this unique id was not made by aclshmem_get_unique_id of the simulator")
    return text[len(_UID_PREFIX) :].decode("ascii")


def aclshmem_finalize() -> int:
    """Leaves the job; collective. Returns 0, also where this process is in no job."""
    global _instance
    current = job.current()
    if current is not None:
        _instance = 0
        with _logging_errors("aclshmem_finalize"):
            current.finalize()
        logger.info("rank %d has finalized shmem", current.rank)
    return 0


def aclshmemx_finalize(instance_id: int) -> int:
    """Leaves the job of an instance; a process has one at a time. Returns 0, also where it is in no job."""
    if check_instance_id(instance_id) != _instance and job.current() is not None:
        raise ValueError(f"aclshmemx_finalize({instance_id}): this process is in the job of instance {_instance}")
    return aclshmem_finalize()


def aclshmemx_init_status() -> InitStatus:
    """Whether this process is in a job."""
    return InitStatus.NOT_INITIALIZED if job.current() is None else InitStatus.INITIALIZED


def aclshmemx_instance_ctx_get() -> InstanceContext | None:
    """The active instance, or None where this process is in no job."""
    return None if job.current() is None else InstanceContext(_instance)


def aclshmemx_instance_ctx_set(instance_id: int) -> int:
    """Makes an instance the active one. Returns 0, or -1 where this process is not in the job of that instance."""
    return 0 if check_instance_id(instance_id) == _instance and job.current() is not None else -1


def aclshmem_global_exit(status: int) -> None:
    """Not on simulated NPUs."""
    raise NotImplementedError("aclshmem_global_exit: raise an error instead; the other ranks are then told")


def aclshmem_info_get_version() -> tuple[int, int]:
    """Major and minor version, of triton-dist."""
    major, minor = __version__.split(".")[:2]
    return int(major), int(minor)


def aclshmem_info_get_name() -> str:
    """Name of this implementation."""
    return "triton-dist simulated NPUs"


def set_conf_store_tls(enable: bool, tls_info: str) -> int:
    """Returns 0. Ranks share the memory of one host, and prove to each other over TCP that they belong to one job:
    what they say there is no secret, so there is nothing to encrypt."""
    if not isinstance(enable, bool) or not isinstance(tls_info, str):
        raise TypeError(f"set_conf_store_tls takes a bool and a str, not {enable!r} and {tls_info!r}")
    return 0


def set_conf_store_tls_key(tls_pk: str, tls_pk_pw: str, py_decrypt_func: Callable[[str], str] | None = None) -> int:
    """Returns 0; see `set_conf_store_tls`."""
    if py_decrypt_func is not None and not callable(py_decrypt_func):
        raise TypeError("set_conf_store_tls_key: py_decrypt_func must be callable")
    return 0


def get_ffts_config() -> int:
    """Address of the hardware's synchronisation area; simulated NPUs have none: 0."""
    return 0


def aclshmemx_set_qp_num(engine: OpEngineType, qp_num: int) -> int:
    """Not on simulated NPUs."""
    raise NotImplementedError("aclshmemx_set_qp_num: simulated NPUs have no queue pairs")


def set_log_level(level: int) -> int:
    """Sets the level of the log, from 0 (DEBUG) to 4 (FATAL), in place of SHMEM_LOG_LEVEL. Returns 0, or -1 for
    another level."""
    number = integer(level, "level", "set_log_level")
    if not 0 <= number < len(_LEVELS):
        return -1
    shmem_log.set_level(_LEVELS[number])
    return 0


def set_extern_logger(func: Callable[[int, str], None]) -> int:
    """Has `func(level, message)` called for what the logger `aclshmem` says. Returns 0."""
    if not callable(func):
        raise TypeError("set_extern_logger: func must be callable")
    for handler in list(logger.handlers):
        if isinstance(handler, _ExternHandler):
            logger.removeHandler(handler)
    logger.addHandler(_ExternHandler(func))
    return 0


class _ExternHandler(logging.Handler):
    def __init__(self, func: Callable[[int, str], None]) -> None:
        super().__init__()
        self._func = func

    def emit(self, record: logging.LogRecord) -> None:
        level = next((index for index, value in enumerate(_LEVELS) if record.levelno <= value), len(_LEVELS) - 1)
        self._func(level, self.format(record))
