"""Barriers. On a stream too, the host waits."""

from __future__ import annotations

from .. import _teams
from .._teams import ACLSHMEM_MAX_TEAMS as ACLSHMEM_MAX_TEAMS
from .._teams import ACLSHMEM_TEAM_INVALID as ACLSHMEM_TEAM_INVALID
from .._teams import ACLSHMEM_TEAM_WORLD as ACLSHMEM_TEAM_WORLD
from .._teams import Handle as Handle
from .utils import AclshmemInvalid, in_this_layers_errors, stream_address


def barrier(team: int) -> None:
    """Waits until all ranks of a team have called it. Raises AclshmemInvalid if there is no such team."""
    with in_this_layers_errors():
        _teams.aclshmem_barrier(team)


def barrier_all() -> None:
    """Waits until all ranks have called it."""
    with in_this_layers_errors():
        _teams.aclshmem_barrier_all()


def sync(team: int) -> None:
    """As `barrier`."""
    with in_this_layers_errors():
        _teams.aclshmem_sync(team)


def sync_all() -> None:
    """As `barrier_all`."""
    with in_this_layers_errors():
        _teams.aclshmem_sync_all()


def barrier_on_stream(team: int, stream: int) -> None:
    """As `barrier`, in the order of a stream."""
    address = stream_address(stream)
    with in_this_layers_errors():
        _teams.aclshmemx_barrier_on_stream(team, address)


def barrier_all_on_stream(stream: int) -> None:
    """As `barrier_all`, in the order of a stream."""
    address = stream_address(stream)
    with in_this_layers_errors():
        _teams.aclshmemx_barrier_all_on_stream(address)


def handle_wait(handle: Handle, stream: int) -> None:
    """Waits until all ranks of the handle's team have called it."""
    if not isinstance(handle, Handle):
        raise AclshmemInvalid(f"handle must be a Handle, not {handle!r}")
    address = stream_address(stream)
    with in_this_layers_errors():
        _teams.aclshmemx_handle_wait(handle, address)
