"""`python -m triton_dist npus`: who holds the NPUs and who waits for them."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from devices.host import NO_CANN, Host

from triton_dist import env

from .conftest import wait_until

HOLDER = """
import sys
from triton_dist.testing import choice
from triton_dist.testing.leases.directory import LeaseDirectory
from triton_dist.testing.leases.pool import NpuPool
npus, count, worker, test = sys.argv[1:]
inventory = choice.choose(choice.Wish.of(npus), allow_busy=False).inventory
print("asks", flush=True)
lease = NpuPool(inventory, LeaseDirectory.of_this_host(), worker).acquire(int(count), test=test)
print("has", *lease.npus, flush=True)
input()
lease.suspect("it hung")
lease.release()
"""


def normalised(text: str) -> list[str]:
    """Lines of `text`, spaces made one, times made "?"."""
    return [re.sub(r"\b[0-9]+ s\b", "? s", " ".join(line.split())) for line in text.splitlines()]


class Desk:
    """Starts tests that hold NPUs or wait for them, and looks at them by the command."""

    def __init__(self, environ: dict[str, str]) -> None:
        self._environ = environ
        self._tests: list[subprocess.Popen[str]] = []

    def test(self, npus: str, count: int, worker: str, name: str) -> subprocess.Popen[str]:
        """A test that has asked for its NPUs."""
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, npus, str(count), worker, name],
            env=self._environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._tests.append(process)
        assert self.next_line(process) == "asks"
        return process

    @staticmethod
    def next_line(process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        return process.stdout.readline().strip()

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "triton_dist", "npus", *args],
            env=self._environ,
            capture_output=True,
            text=True,
            check=False,
        )

    def lines(self) -> list[str]:
        """What is printed."""
        done = self.run()
        assert done.returncode == 0, done.stderr
        return normalised(done.stdout)

    def end(self) -> None:
        for process in self._tests:
            process.kill()
            process.communicate()


@pytest.fixture
def host(tmp_path: Path) -> Host:
    made = Host(tmp_path / "host")
    made.a2()
    return made


@pytest.fixture
def desk(host: Host, tmp_path: Path) -> Iterator[Desk]:
    taken_out = dict.fromkeys((*NO_CANN, "TRITON_DIST_SIM_NPUS"))
    made = Desk(env.child_environ(**taken_out, **host.environ, TRITON_DIST_LEASE_DIR=tmp_path / "leases"))
    yield made
    made.end()


def test_the_page_shows_what_is_printed(desk: Desk) -> None:
    holder = desk.test("0-1", 2, "gw1", "test_ring[2]")
    assert desk.next_line(holder) == "has 0 1"
    waiting = desk.test("0-2", 3, "gw0", "test_allreduce[3]")
    wait_until(lambda: len(desk.lines()) > 9, "the second test to be in the line")
    page = Path(__file__).parents[3].joinpath("docs", "testing.md").read_text()
    shown = page.split("## Who holds the NPUs")[1].split("```text\n")[1].split("```")[0]
    shown = shown.replace("41822", str(holder.pid)).replace("41910", str(waiting.pid))
    assert desk.lines() == normalised(shown)


def test_an_npu_in_quarantine(desk: Desk) -> None:
    holder = desk.test("3,", 1, "", "test_hang")
    assert desk.next_line(holder) == "has 3"
    holder.communicate("\n")
    assert "3 Ascend910B3 OK quarantined it hung" in desk.lines()


def test_simulated_npus_and_a_line(host: Host, desk: Desk) -> None:
    host.nodes([])
    holder = desk.test("sim:2", 2, "", "test_pair")
    assert desk.next_line(holder) == "has 0 1"
    first = desk.test("sim:2", 2, "gw0", "test_first")
    wait_until(lambda: any("first in line" in line for line in desk.lines()), "the first in the line")
    # It uses what the first cannot use.
    passing = desk.test("sim:4", 3, "", "test_bigger")
    wait_until(lambda: any("number 2 in line" in line for line in desk.lines()), "the second in the line")
    lines = desk.lines()
    assert lines[:4] == [
        "npu soc health state since",
        f"sim 0 Ascend910B3 OK leased pytest {holder.pid} test_pair ? s",
        f"sim 1 Ascend910B3 OK leased pytest {holder.pid} test_pair ? s",
        "sim 2 Ascend910B3 OK free",
    ]
    assert lines[9:] == [
        f"waiting: pytest {first.pid} gw0 test_first needs 2 simulated, first in line for ? s",
        f"waiting: pytest {passing.pid} test_bigger needs 3 simulated, number 2 in line for ? s",
    ]


def test_simulated_npus_in_use_on_a_host_with_real_ones(desk: Desk) -> None:
    holder = desk.test("sim:2", 1, "", "test_simulated")
    assert desk.next_line(holder) == "has 0"
    lines = desk.lines()
    assert len(lines) == 10
    assert lines[9] == f"sim 0 Ascend910B3 OK leased pytest {holder.pid} test_simulated ? s"


def test_json(desk: Desk) -> None:
    holder = desk.test("0-1", 2, "gw1", "test_ring[2]")
    assert desk.next_line(holder) == "has 0 1"
    plain = json.loads(desk.run("--json").stdout)
    assert [npu["state"] for npu in plain["npus"]] == ["leased"] * 2 + ["free"] * 3 + ["busy", "skipped", "free"]
    assert plain["waiting"] == []
    assert plain["npus"][1]["holder"].items() >= {"pid": holder.pid, "worker": "gw1", "test": "test_ring[2]"}.items()
    assert (plain["npus"][6]["health"], plain["npus"][6]["logical"]) == ("Warning", 6)


def test_notes_say_how_npus_were_found(host: Host, desk: Desk) -> None:
    host.npu_smi_script("exit 7")
    assert desk.lines()[-1].startswith("note: `npu-smi info` failed (exit status 7)")


def test_looking_changes_nothing(desk: Desk, tmp_path: Path) -> None:
    desk.lines()
    assert not (tmp_path / "leases").exists()


def test_colours_are_for_terminals(desk: Desk) -> None:
    assert "\x1b" not in desk.run().stdout
    ours, theirs = pty.openpty()
    try:
        command = [sys.executable, "-m", "triton_dist", "npus"]
        subprocess.run(command, env=desk._environ, stdout=theirs, check=True)
        assert b"\x1b[32m" in os.read(ours, 65536)
    finally:
        os.close(ours)
        os.close(theirs)


def test_an_unreadable_lease_directory_is_one_line(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "leases").write_text("")
    done = desk.run()
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(
        f"python -m triton_dist npus: the lease directory {tmp_path / 'leases'} cannot be used"
    )


def test_help_has_examples(desk: Desk) -> None:
    done = desk.run("--help")
    assert done.returncode == 0
    assert "examples:" in done.stdout
    assert "quarantined" in done.stdout
