"""`python -m ci.bench`, which `nox -s bench` runs: rows, their file, their selection."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from triton_dist import env

CHECKOUT = Path(__file__).parents[3]
sys.path.insert(0, str(CHECKOUT))

from ci.bench.row import Row, interleaved  # noqa: E402


def bench(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ci.bench", "--programs", "none", *map(str, arguments)],
        cwd=CHECKOUT,
        env=env.child_environ(PYTHONPATH=str(CHECKOUT)),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize(
    ("row", "ok"),
    [
        (Row("a", 6.0, "us", "b", 2.0, "at most 3x", most=3), True),
        (Row("a", 6.1, "us", "b", 2.0, "at most 3x", most=3), False),
        (Row("a", 6.0, "us", "b", 2.0, "shown"), True),
        (Row("a", 6.0, "us", "b", 2.0, "fits", met=False), False),
    ],
)
def test_goals(row: Row, ok: bool) -> None:
    assert row.ok is ok
    assert row.as_json()["ratio"] == row.value / row.peer_value


def test_sides_take_turns_and_give_their_medians() -> None:
    order: list[str] = []
    numbers = iter([5.0, 1.0, 9.0])

    def one() -> float:
        order.append("one")
        return next(numbers)

    def other() -> float:
        order.append("other")
        return 2.0

    assert interleaved(3, one, other) == [5.0, 2.0]
    assert order == ["one", "other"] * 3


def test_a_row_that_is_chosen_is_printed_and_written(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    result = bench("launch", "--repetitions", "1", "--json", file)
    assert result.returncode in (0, 1), result.stderr
    (row,) = json.loads(file.read_text())
    assert list(row) == ["name", "value", "unit", "peer", "peer_value", "goal", "ratio", "ok"]
    assert (row["name"], row["unit"], row["ok"]) == ("launch", "us", result.returncode == 0)
    assert row["ratio"] == row["value"] / row["peer_value"] > 0
    assert " launch " in result.stdout


def test_an_unknown_row_is_refused_with_those_there_are() -> None:
    result = bench("lunch")
    assert result.returncode == 2
    assert (
        "no row lunch: choose from warm, makespan, overhead, pingpong, launch, fibers, ranks, harness" in result.stderr
    )
