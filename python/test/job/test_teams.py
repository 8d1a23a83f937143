"""Teams: who is in them, under which number, and barriers of them that leave the others alone."""

from __future__ import annotations

import time

import host_api
import light_ranks

from triton_dist.shims import shmem as ash


def session() -> dict[str, str]:
    """An environment in which any ip_port leads to a job of this test only."""
    return {"TRITON_DIST_SESSION": light_ranks.new_endpoint()}


def split(rank: int, world_size: int) -> dict[str, object]:
    host_api.init(rank, world_size, port=8666)
    odd = ash.team_split_strided(0, 1, 2, 2)
    row, column = ash.team_split_2d(0, 3)
    inner = ash.team_split_strided(row, 1, 1, 1)
    result = {
        "odd": (ash.team_my_pe(odd), ash.team_n_pes(odd)),
        "member": odd != ash.ACLSHMEM_TEAM_INVALID,
        "row": (ash.my_pe(row), ash.pe_count(row)),
        "column": (ash.team_my_pe(column), ash.team_n_pes(column)),
        "inner": (ash.team_my_pe(inner), ash.team_n_pes(inner)),
        "to world": [ash.team_translate_pe(row, pe, 0) for pe in range(-1, 4)],
        "to row": [ash.team_translate_pe(0, pe, row) for pe in range(world_size)],
    }
    assert (ash.team_my_pe(0), ash.team_n_pes(0)) == (rank, world_size)
    assert ash.aclshmem_team_get_config(0).num_contexts == 0
    for start, stride, size in ((-1, 1, 1), (0, 0, 1), (0, 1, 0), (0, 1, 6), (4, 2, 2), (5, 1, 1)):
        assert host_api.error(ash.team_split_strided, 0, start, stride, size).startswith("RuntimeError: team_split")
    assert "there is no team 9" in host_api.error(ash.team_split_2d, 9, 1)
    assert "x_range is 0" in host_api.error(ash.team_split_2d, 0, 0)
    ash.team_destroy(row)
    ash.team_destroy(0)  # stays
    assert (ash.team_n_pes(row), ash.team_my_pe(row), ash.team_translate_pe(0, 0, row)) == (-1, -1, -1)
    assert ash.team_n_pes(0) == world_size
    assert host_api.error(ash.aclshmem_barrier, row).startswith("ValueError: aclshmem_barrier: there is no team")
    assert host_api.error(ash.aclshmem_barrier, 2048).startswith("ValueError: aclshmem_barrier: team is 2048")
    assert host_api.error(ash._pyshmem.Handle, row).startswith("ValueError: Handle: there is no team")
    ash.aclshmem_finalize()
    return result


def test_members_and_numbers() -> None:
    # Five ranks in rows of three: 0 1 2 / 3 4.
    results = light_ranks.values(light_ranks.run(split, 5, environment=session()))
    assert [result["odd"] for result in results] == [(-1, -1), (0, 2), (-1, -1), (1, 2), (-1, -1)]
    assert [result["member"] for result in results] == [False, True, False, True, False]
    assert [result["row"] for result in results] == [(0, 3), (1, 3), (2, 3), (0, 2), (1, 2)]
    assert [result["column"] for result in results] == [(0, 2), (0, 2), (0, 1), (1, 2), (1, 2)]
    assert [result["inner"] for result in results] == [(-1, -1), (0, 1), (-1, -1), (-1, -1), (0, 1)]
    assert results[1]["to world"] == [-1, 0, 1, 2, -1]
    assert results[4]["to world"] == [-1, 3, 4, -1, -1]
    assert results[3]["to row"] == [-1, -1, -1, 0, 1]


def barriers(rank: int, world_size: int) -> list[float]:
    """Rows and columns meet in turn, many times; then only one row does, while the other is late."""
    host_api.init(rank, world_size, port=8666)
    row, column = ash.team_split_2d(0, 2)
    words = ash.aclshmem_calloc(world_size, 64)
    for turn in range(1, 51):
        for team, function in ((row, ash.aclshmem_barrier), (column, ash.aclshmem_sync)):
            for pe in range(ash.team_n_pes(team)):
                other = ash.team_translate_pe(team, pe, 0)
                ash.aclshmem_int32_p(words + 64 * rank, 2 * turn + (team == column), other)
            function(team)
            for pe in range(ash.team_n_pes(team)):
                other = ash.team_translate_pe(team, pe, 0)
                seen = host_api.int32s(words + 64 * other, 1)[0]
                assert seen >= 2 * turn + (team == column), (turn, other)
    ash.aclshmem_barrier_all()
    begin = time.monotonic()
    if rank >= 2:
        time.sleep(1.5)
    ash.aclshmemx_barrier_on_stream(row, 0)
    by_row = time.monotonic() - begin
    ash.aclshmemx_handle_wait(ash._pyshmem.Handle(column), 0)
    by_column = time.monotonic() - begin
    ash.aclshmemx_barrier_all_on_stream(0)
    ash.aclshmem_sync_all()
    ash.aclshmem_finalize()
    return [by_row, by_column]


def test_barriers_of_teams_wait_for_members_only() -> None:
    times = light_ranks.values(light_ranks.run(barriers, 4, deadline=60.0, environment=session()))
    for rank in (0, 1):
        assert times[rank][0] < 1.2
        assert times[rank][1] >= 1.2
    for rank in (2, 3):
        assert times[rank][0] >= 1.5


def again(rank: int, world_size: int) -> int:
    """Teams of a job do not outlive it."""
    host_api.init(rank, world_size, port=8666)
    team = ash.team_split_strided(0, 0, 1, 2)
    ash.aclshmem_barrier(team)
    ash.aclshmem_finalize()
    assert ash.team_n_pes(team) == -1
    host_api.init(rank, world_size, port=8666)
    size = ash.team_n_pes(team)
    ash.aclshmem_barrier_all()
    ash.aclshmem_finalize()
    return size


def test_a_new_job_has_no_old_teams() -> None:
    assert light_ranks.values(light_ranks.run(again, 2, environment=session())) == [-1, -1]
