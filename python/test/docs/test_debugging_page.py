"""The commands of docs/debugging.md do what the page says."""

from __future__ import annotations

import json
import re
import secrets
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from triton_dist import env

CHECKOUT = Path(__file__).parents[3]
PAGE = (CHECKOUT / "docs" / "debugging.md").read_text()
HEARD = r"rank \d+ of (\d+) heard from rank \d+"


def run(heading: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Runs the command of a section in the environment of this test; files that it writes go to `tmp_path`."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    (command,) = re.findall(r"```sh\n(.*?)\n```", section)
    words = shlex.split(command)
    variables = {}
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        variables[name] = str(tmp_path / value) if value.endswith(".json") else value
    assert words.pop(0) == "torchrun"
    words = [sys.executable if word == "python" else word for word in words]
    return subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", *words],
        cwd=CHECKOUT,
        # A session of its own: the tutorial names a port that another test may have.
        env=env.child_environ(OMP_NUM_THREADS=1, TRITON_DIST_SESSION=secrets.token_hex(16), **variables),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_the_ring_runs_as_plain_python(tmp_path: Path) -> None:
    result = run("As plain Python", tmp_path)
    assert result.returncode == 0, result.stderr
    assert len(re.findall(HEARD, result.stdout)) == 2


def test_gdb_stops_on_the_line(tmp_path: Path) -> None:
    if shutil.which("gdb") is None:
        pytest.skip("gdb is not installed")
    result = run("With gdb", tmp_path)
    if "ptrace: Operation not permitted" in result.stderr:
        pytest.skip("this container does not let gdb start a process (ptrace)")
    # Two gdbs share the terminal: one's line may come into the midst of another's.
    assert re.search(r"hit Breakpoint 1, hello \(\) at \S*hello_ring\.py:21", result.stdout), result.stdout
    assert len(re.findall(HEARD, result.stdout)) == 2


def test_the_timeline_is_written(tmp_path: Path) -> None:
    result = run("A timeline", tmp_path)
    assert result.returncode == 0, result.stderr
    items = json.loads((tmp_path / "ring.json").read_text())["traceEvents"]
    assert sorted(item["pid"] for item in items if item.get("cat") == "kernel") == [0, 1, 2, 3]


def test_the_table_is_printed(tmp_path: Path) -> None:
    result = run("Cycles", tmp_path)
    assert result.returncode == 0, result.stderr
    shown = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)[0].splitlines()
    printed = result.stdout[result.stdout.index("cycles of PE 1") :].splitlines()
    assert [line.split()[:2] for line in printed[:2]] == [line.split()[:2] for line in shown[:2]]
    for line in shown[2:]:
        block, frame, *_, name, place = line.split()
        assert any(re.fullmatch(rf" *{block} +{frame} .* {name} {place}", row) for row in printed), line
