"""Timelines and profiles of jobs on simulated NPUs."""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from triton_dist import env

SCRIPT = Path(__file__).parent / "exchange.py"
PROGRAMS, ROUNDS = 2, 3


def line_of(mark: str) -> int:
    return next(i for i, text in enumerate(SCRIPT.read_text().splitlines(), 1) if text.endswith(f"# {mark}"))


def run(end: str, **environ: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", str(SCRIPT), end],
        # Of its own: its endpoint is in the script, and other workers may run it at the same time.
        env=env.child_environ(OMP_NUM_THREADS=1, TRITON_DIST_SESSION=secrets.token_hex(16), **environ),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


Spans = list[dict[str, Any]]


def spans_of(timeline: dict[str, Any], **wanted: object) -> Spans:
    return [
        item
        for item in timeline["traceEvents"]
        if item["ph"] == "X" and all(item[key] == value for key, value in wanted.items())
    ]


def around(spans: Spans, end_of_arrow: dict[str, Any], category: str) -> dict[str, Any]:
    """The span of `category` that the end of an arrow is bound to."""
    (span,) = (
        span
        for span in spans
        if (span["pid"], span["tid"], span["cat"]) == (end_of_arrow["pid"], end_of_arrow["tid"], category)
        and span["ts"] <= end_of_arrow["ts"] <= span["ts"] + span["dur"]
    )
    return span


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    directory = tmp_path_factory.mktemp("trace")
    result = run("finalize", TRITON_DIST_TRACE=directory / "job.json", SHMEM_CYCLE_PROF_PE=1)
    assert result.returncode == 0, result.stderr
    assert [path.name for path in directory.iterdir()] == ["job.json"]
    return json.loads((directory / "job.json").read_text()), result.stdout


def test_every_item_has_what_the_format_asks_for(traced: tuple[dict[str, Any], str]) -> None:
    items = traced[0]["traceEvents"]
    assert {item["ph"] for item in items} == {"M", "X", "s", "f"}
    for item in items:
        assert isinstance(item["name"], str)
        assert isinstance(item["pid"], int)
        assert isinstance(item["tid"], int)
        if item["ph"] != "M":
            assert item["ts"] >= 0
        if item["ph"] == "X":
            assert item["dur"] >= 0


def test_tracks_are_ranks_streams_and_cores(traced: tuple[dict[str, Any], str]) -> None:
    names = {
        (item["pid"], item["args"]["name"])
        for item in traced[0]["traceEvents"]
        if item["name"] in ("process_name", "thread_name")
    }
    for rank in (0, 1):
        assert {(rank, f"rank {rank}"), (rank, "host"), (rank, "vector core 0"), (rank, "vector core 1")} <= names
        assert any(re.fullmatch(r"stream \d+", name) for pid, name in names if pid == rank)


def test_spans_are_nested_and_name_their_lines(traced: tuple[dict[str, Any], str]) -> None:
    for rank in (0, 1):
        (kernel,) = spans_of(traced[0], pid=rank, cat="kernel", name="exchange")
        assert kernel["args"]["programs"] == PROGRAMS
        programs = spans_of(traced[0], pid=rank, cat="program")
        assert len({program["tid"] for program in programs}) == PROGRAMS
        calls = spans_of(traced[0], pid=rank, cat="call")
        lines = Counter((call["name"], call["args"]["at"].rpartition(":")[2]) for call in calls)
        signal, wait = ("PING", "BACK") if rank == 0 else ("PONG", "THERE")
        assert lines == {
            ("notify", str(line_of(signal))): PROGRAMS * ROUNDS,
            ("wait", str(line_of(wait))): PROGRAMS * ROUNDS,
            ("putmem", str(line_of("PUT"))): PROGRAMS,
            ("barrier_all", str(line_of("BARRIER"))): PROGRAMS,
        }
        for outer, inner in [(kernel, programs), *((program, calls) for program in programs)]:
            for span in inner:
                if span["tid"] == outer["tid"] or outer is kernel:
                    assert outer["ts"] - 0.001 <= span["ts"]
                    assert span["ts"] + span["dur"] <= outer["ts"] + outer["dur"] + 0.001
        assert {put["args"]["bytes"] for put in calls if put["name"] == "putmem"} == {64}
        assert spans_of(traced[0], pid=rank, cat="host", name="aclshmem_finalize")


def test_an_arrow_leads_from_each_notify_to_its_wait(traced: tuple[dict[str, Any], str]) -> None:
    spans = spans_of(traced[0])
    ends = {phase: {item["id"]: item for item in traced[0]["traceEvents"] if item["ph"] == phase} for phase in "sf"}
    assert len(ends["s"]) == 2 * PROGRAMS * ROUNDS
    assert ends["s"].keys() == ends["f"].keys()
    for number, start in ends["s"].items():
        finish = ends["f"][number]
        notify, wait = around(spans, start, "call"), around(spans, finish, "call")
        assert (notify["name"], wait["name"]) == ("notify", "wait")
        assert notify["pid"] != wait["pid"]
        assert notify["args"]["program"] == wait["args"]["program"]
        assert start["ts"] <= finish["ts"]
        assert finish["bp"] == "e"
    # Each wait has its own.
    assert len({(finish["pid"], finish["tid"], finish["ts"]) for finish in ends["f"].values()}) == len(ends["f"])


def test_the_profile_is_printed_for_one_rank(traced: tuple[dict[str, Any], str]) -> None:
    output = traced[1]
    assert output.count("cycles of PE") == 1
    table = output[output.index("cycles of PE 1") :].splitlines()
    assert table[1].split() == ["BlockID", "FrameID", "Cycles", "Count", "AvgTime(us)"]
    rows = [line.split() for line in table[2:] if re.match(r"\s*\d+ ", line)]
    assert {(int(row[0]), int(row[1]), int(row[3]), row[5]) for row in rows} == {
        (program, line_of(mark), count, name)
        for program in range(PROGRAMS)
        for mark, count, name in [
            ("THERE", ROUNDS, "wait"),
            ("PONG", ROUNDS, "notify"),
            ("PUT", 1, "putmem"),
            ("BARRIER", 1, "barrier_all"),
        ]
    }
    for row in rows:
        assert abs(int(row[2]) * 0.02 / int(row[3]) - float(row[4])) < 0.03


def test_a_rank_that_dies_is_in_the_timeline(tmp_path: Path) -> None:
    result = run("killed", TRITON_DIST_TRACE=tmp_path / "job.json")
    assert result.returncode != 0
    # torchrun ends the other ranks: a process that outlives them makes the timeline.
    deadline = time.monotonic() + 60
    while [path.name for path in tmp_path.iterdir()] != ["job.json"]:
        assert time.monotonic() < deadline, list(tmp_path.iterdir())
        time.sleep(0.05)
    timeline = json.loads((tmp_path / "job.json").read_text())
    assert spans_of(timeline, pid=1, cat="kernel", name="exchange")
    calls = spans_of(timeline, pid=0, cat="call", name="wait")
    (wait,) = (call for call in calls if call["args"]["kernel"] == "wait_for_ever")
    assert wait["args"]["unfinished"] is True
