"""Teams: groups of ranks with numbers of their own, and barriers of them."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

from triton_dist.runtime import job

from ._arguments import integer, stream_key
from ._types import TeamConfig, TypedAttributes

__all__ = [
    "ACLSHMEM_MAX_TEAMS",
    "ACLSHMEM_TEAM_INVALID",
    "ACLSHMEM_TEAM_WORLD",
    "Handle",
    "aclshmem_barrier",
    "aclshmem_barrier_all",
    "aclshmem_sync",
    "aclshmem_sync_all",
    "aclshmem_team_get_config",
    "aclshmemx_barrier_all_on_stream",
    "aclshmemx_barrier_on_stream",
    "aclshmemx_handle_wait",
    "my_pe",
    "pe_count",
    "team_destroy",
    "team_my_pe",
    "team_n_pes",
    "team_split_2d",
    "team_split_strided",
    "team_translate_pe",
]

ACLSHMEM_TEAM_WORLD = 0
ACLSHMEM_TEAM_INVALID = -1
ACLSHMEM_MAX_TEAMS = 2048

_tables: weakref.WeakKeyDictionary[job.Job, dict[int, Sequence[int]]] = weakref.WeakKeyDictionary()


def _table() -> dict[int, Sequence[int]]:
    """Teams of the current job by number, each a list of ranks; empty where this process is in no job."""
    current = job.current()
    if current is None:
        return {}
    return _tables.setdefault(current, {ACLSHMEM_TEAM_WORLD: range(current.world_size)})


def _members(team: object, function: str) -> Sequence[int] | None:
    """Ranks of a team; None if there is no such team."""
    return _table().get(integer(team, "team", function))


def my_pe(team: int = ACLSHMEM_TEAM_WORLD) -> int:
    """Number of this rank, in a team; -1 if there is no such team."""
    job.require("my_pe")
    return team_my_pe(team)


def pe_count(team: int = ACLSHMEM_TEAM_WORLD) -> int:
    """Number of ranks in a team; -1 if there is no such team."""
    job.require("pe_count")
    return team_n_pes(team)


def team_my_pe(team_id: int) -> int:
    """Number of this rank in a team; -1 if there is no such team."""
    members = _members(team_id, "team_my_pe")
    return -1 if members is None else members.index(job.require("team_my_pe").rank)


def team_n_pes(team_id: int) -> int:
    """Number of ranks in a team; -1 if there is no such team."""
    members = _members(team_id, "team_n_pes")
    return -1 if members is None else len(members)


def team_split_strided(parent: int, start: int, stride: int, size: int) -> int:
    """A new team of `size` ranks of `parent`: its ranks `start`, `start + stride`, ...; all ranks of `parent` call it.

    Returns its number, or ACLSHMEM_TEAM_INVALID (-1) where this rank is not in it.

    Raises:
        RuntimeError: there is no team `parent`, or it has no such ranks.
    """
    name = "team_split_strided"
    current, members = job.require(name), _members(parent, name)
    first, step, count = integer(start, "start", name), integer(stride, "stride", name), integer(size, "size", name)
    if members is None:
        raise RuntimeError(f"{name}: there is no team {parent}")
    if first < 0 or step < 1 or count < 1 or first + step * (count - 1) >= len(members):
        raise RuntimeError(
            f"{name}: start {first}, stride {step} and size {count} do not name ranks of team {parent}, "
            f"which has {len(members)}"
        )
    chosen = members[first : first + step * (count - 1) + 1 : step]
    return _add(chosen, name) if current.rank in chosen else ACLSHMEM_TEAM_INVALID


def _add(members: Sequence[int], function: str) -> int:
    table = _table()
    number = next((number for number in range(1, ACLSHMEM_MAX_TEAMS) if number not in table), None)
    if number is None:
        raise RuntimeError(f"{function}: there are {ACLSHMEM_MAX_TEAMS} teams already: destroy some")
    table[number] = members
    return number


def team_split_2d(parent: int, x_range: int) -> tuple[int, int]:
    """Lays `parent` out in rows of `x_range` ranks: two new teams, of this rank's row and of its column.

    Raises:
        RuntimeError: there is no team `parent`, or `x_range` is less than 1.
    """
    name = "team_split_2d"
    current, members = job.require(name), _members(parent, name)
    width = integer(x_range, "x_range", name)
    if members is None:
        raise RuntimeError(f"{name}: there is no team {parent}")
    if width < 1:
        raise RuntimeError(f"{name}: x_range is {width}: it must be at least 1")
    row, column = divmod(members.index(current.rank), width)
    return _add(members[row * width : (row + 1) * width], name), _add(members[column::width], name)


def team_translate_pe(src_team: int, src_pe: int, dest_team: int) -> int:
    """Number in `dest_team` of the rank that has number `src_pe` in `src_team`; -1 if there is none."""
    name = "team_translate_pe"
    job.require(name)
    source, target = _members(src_team, name), _members(dest_team, name)
    number = integer(src_pe, "src_pe", name)
    if source is None or target is None or not 0 <= number < len(source) or source[number] not in target:
        return -1
    return target.index(source[number])


def team_destroy(team: int) -> None:
    """Dissolves a team; nothing happens if there is none, or if it is that of all ranks."""
    if integer(team, "team", "team_destroy") != ACLSHMEM_TEAM_WORLD:
        _table().pop(team, None)


def aclshmem_team_get_config(team: int) -> TeamConfig:
    """The configuration of a team.

    Raises:
        RuntimeError: there is no such team.
    """
    if _members(team, "aclshmem_team_get_config") is None:
        raise RuntimeError(f"aclshmem_team_get_config: there is no team {team}")
    return TeamConfig()


def is_live_team(team_id: int) -> bool:
    """Whether there is a team of this number."""
    return team_id in _table()


def live_team(team: object, function: str) -> Sequence[int]:
    """Ranks of a team. Raises ValueError if there is no such team."""
    if isinstance(team, int) and not isinstance(team, bool) and 0 <= team < ACLSHMEM_MAX_TEAMS:
        members = _table().get(team)
        if members is not None:
            return members
        raise ValueError(f"{function}: there is no team {team}, or no longer")
    raise ValueError(f"{function}: team is {team!r}: it must be an integer from 0 to {ACLSHMEM_MAX_TEAMS - 1}")


class Handle(TypedAttributes):
    """Stands for what the ranks of a team have sent without waiting.

    Attributes:
        team_id: number of the team; ValueError if there is none.
    """

    __slots__ = ("team_id",)
    team_id: int

    def __init__(self, team_id: int = ACLSHMEM_TEAM_WORLD) -> None:
        self.team_id = team_id

    def __setattr__(self, name: str, value: object) -> None:
        if name == "team_id":
            live_team(value, "Handle")
        super().__setattr__(name, value)


def aclshmem_barrier_all() -> None:
    """Waits until all ranks have called it, and all that they sent is complete.

    Raises:
        RuntimeError: a rank has ended or finalized, or makes another collective call.
    """
    _barrier_all("aclshmem_barrier_all")


def aclshmem_barrier(team: int) -> None:
    """As `aclshmem_barrier_all`, for the ranks of a team.

    Raises:
        ValueError: there is no such team.
    """
    _barrier(team, "aclshmem_barrier")


def aclshmem_sync_all() -> None:
    """As `aclshmem_barrier_all`; the simulator knows no difference."""
    _barrier_all("aclshmem_sync_all")


def aclshmem_sync(team: int) -> None:
    """As `aclshmem_barrier`; the simulator knows no difference."""
    _barrier(team, "aclshmem_sync")


def aclshmemx_barrier_all_on_stream(stream: int) -> None:
    """As `aclshmem_barrier_all`, in the order of a stream: the stream waits, the host goes on."""
    name = "aclshmemx_barrier_all_on_stream"
    key = stream_key(stream, name)
    if key is None:
        _barrier_all(name)
    else:
        current = job.require(name)
        current.barrier_on_stream(list(range(current.world_size)), key)


def aclshmemx_barrier_on_stream(team: int, stream: int) -> None:
    """As `aclshmem_barrier`, in the order of a stream: the stream waits, the host goes on."""
    name = "aclshmemx_barrier_on_stream"
    key = stream_key(stream, name)
    if key is None:
        _barrier(team, name)
    else:
        job.require(name).barrier_on_stream(list(live_team(team, name)), key)


def aclshmemx_handle_wait(handle: Handle, stream: int) -> None:
    """Waits until all ranks of the handle's team have called it, and all that they sent is complete."""
    name = "aclshmemx_handle_wait"
    if not isinstance(handle, Handle):
        raise TypeError(f"{name}: handle must be a Handle, not {handle!r}")
    stream_key(stream, name)
    _barrier(handle.team_id, name)


def _barrier_all(function: str) -> None:
    current = job.require(function)
    current.heap.quiet()
    current.barrier(function)


def _barrier(team: int, function: str) -> None:
    current = job.require(function)
    members = live_team(team, function)
    if len(members) == current.world_size:
        _barrier_all(function)
    else:
        current.team_barrier(list(members), function)
