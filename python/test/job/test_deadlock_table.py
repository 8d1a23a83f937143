"""What the table of a deadlock has besides what the tests on ranks see in it."""

from __future__ import annotations

from typing import Any

from triton_dist.runtime import deadlock

LOOP: dict[str, Any] = {
    "kernel": "takes_lock",
    "program": [3, 0, 0],
    "file": "/somewhere/locks.py",
    "line": 12,
    "primitive": "loop",
    "address": None,
    "pe_offset": None,
    "compare": "==",
    "wanted": 0,
    "has": 0,
    "missing_pes": None,
    "index": 0,
    "count": 0,
    "queued": 0,
    "loops": True,
    "seconds": 2.5,
}


def cells(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in text.splitlines()]


def test_a_loop_of_a_program_is_named_without_a_value() -> None:
    (_, row) = cells(deadlock.suspicion([deadlock.RankState(1, [LOOP], "runs")]))
    place = "locks.py:12 loop"
    assert row == ["1", "(3,0,0)", "takes_lock", place, "what it looks at, spinning by itself", "2.50 s"]


def test_a_rank_that_waits_for_nothing_has_what_it_ran_last_and_what_its_host_does() -> None:
    state = deadlock.RankState(0, [], "runs", finished={"kernel": "sends", "seconds": 0.25})
    assert cells(deadlock.table([state]))[1:] == [
        ["0", "finished", "sends", "nothing: ended 0.25 s ago"],
        ["0", "host", "runs"],
    ]


def test_the_last_line_replays() -> None:
    text = deadlock.verdict([deadlock.RankState(0, [], "runs")], "TRITON_DIST_SIM_SEED=7")
    assert text.startswith(deadlock.TITLE)
    assert text.endswith("\nreplay: TRITON_DIST_SIM_SEED=7")
