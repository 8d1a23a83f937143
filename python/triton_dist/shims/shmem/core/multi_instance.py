"""Instances of shmem in one process. On simulated NPUs a process has one at a time, of any number."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from .._lifecycle import aclshmemx_instance_ctx_set
from .._types import InstanceContext as InstanceContext
from .utils import AclshmemError, _validate_instance_id, active_instance


def current_instance() -> int:
    """Number of the active instance. Raises AclshmemError where this process is in no job."""
    return active_instance()


def set_instance(instance_id: int) -> None:
    """Makes an instance the active one.

    Raises:
        AclshmemInvalid: `instance_id` is not possible.
        AclshmemError: this process is in no job.
    """
    _validate_instance_id(instance_id)
    if aclshmemx_instance_ctx_set(instance_id) != 0:
        raise AclshmemError(f"instance {instance_id} is not initialised")


@contextlib.contextmanager
def multi_instance(instance_id: int) -> Iterator[None]:
    """Makes an instance the active one for the body of a `with` statement."""
    _validate_instance_id(instance_id)
    previous = current_instance()
    set_instance(instance_id)
    try:
        yield
    finally:
        set_instance(previous)
