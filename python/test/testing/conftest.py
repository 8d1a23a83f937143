"""Suites as users have them, each run by a pytest of its own with NPUs, files and processes of its own."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from triton_dist import env
from triton_dist.testing.leases.directory import LeaseDirectory
from triton_dist.testing.leases.inventory import SimulatedNpus
from triton_dist.testing.leases.line import in_line
from triton_dist.testing.leases.pool import NpuPool

# Generous: the machine may be busy with other things.
PATIENCE = 240.0
# pytest's options in every run. Hypothesis would be imported at its end: more than half of what an empty run takes.
# Stacks of a run that hangs are there before patience ends.
ALWAYS = (
    *("-p", "no:cacheprovider"),
    *("-p", "no:randomly"),
    *("-p", "no:hypothesispytest"),
    f"-ofaulthandler_timeout={PATIENCE / 2:g}",
)


def wait_until(condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s"
        time.sleep(0.01)


class Suite:
    """A directory of test files, with a pool of simulated NPUs that nobody else uses.

    Attributes:
        path: the directory.
        leases: its lease directory; processes of the suite are known by having it in their environment.
        tmp: where its processes put temporary files; empty unless they leave some.
    """

    def __init__(self, root: Path) -> None:
        self.path = root / "suite"
        self.leases = root / "leases"
        self.tmp = root / "tmp"
        self.path.mkdir()
        self.tmp.mkdir()
        self._basetemps = (root / f"basetemp{number}" for number in itertools.count())
        self.write("pytest.ini", "[pytest]\n")

    def write(self, name: str, text: str) -> None:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def remember_ranks(self, *nodeids: str) -> tuple[str, ...]:
        """Has pytest's cache know of multi-rank tests; returns options with which a run forks its workers then."""
        self.write(".pytest_cache/v/triton-dist/tests", json.dumps({nodeid: [2, 1.0] for nodeid in nodeids}))
        return ("-p", "cacheprovider")

    def start(self, *args: str, through: Sequence[str] = ()) -> subprocess.Popen[str]:
        """pytest with `args`, in a session of its own, so that a signal to its group is what Ctrl-C sends.

        `through` are the words of a command that starts another.
        """
        environ = env.child_environ(
            TRITON_DIST_LEASE_DIR=self.leases,
            TRITON_DIST_CACHE_DIR=env.TRITON_DIST_CACHE_DIR.get(),
            TMPDIR=self.tmp,
            PYTHONDONTWRITEBYTECODE="1",
            # Where this very test is run by xdist.
            PYTEST_XDIST_WORKER=None,
            PYTEST_XDIST_WORKER_COUNT=None,
            PYTEST_ADDOPTS=None,
            PYTEST_CURRENT_TEST=None,
            TRITON_DIST_SIM_NPUS=None,
        )
        return subprocess.Popen(
            [
                *through,
                sys.executable,
                "-m",
                "pytest",
                *ALWAYS,
                f"--basetemp={next(self._basetemps)}",
                *args,
            ],
            cwd=self.path,
            env=environ,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def run(self, *args: str, through: Sequence[str] = ()) -> pytest.RunResult:
        """Runs pytest to its end, after which nothing of the suite may be left."""
        began = time.monotonic()
        process = self.start(*args, through=through)
        try:
            output, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            print(process.communicate()[0])
            raise
        print(output)
        self.check_nothing_left(seconds=0.5)
        return pytest.RunResult(process.returncode, output.splitlines(), [], time.monotonic() - began)

    def processes(self) -> dict[int, str]:
        """Command lines of the suite's processes, by pid."""
        mark = f"TRITON_DIST_LEASE_DIR={self.leases}".encode()
        found = {}
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue  # ended meanwhile, or another user's
        return found

    def pids_of_zygotes(self) -> list[int]:
        """Zygotes and the ranks that they forked, which have the same command line, oldest first."""
        return sorted(pid for pid, command in self.processes().items() if "ranks.zygote" in command)

    def pool(self) -> NpuPool:
        return NpuPool(SimulatedNpus(8, "Ascend910B3"), LeaseDirectory(self.leases))

    def free_npus(self) -> int:
        """How many NPUs nobody holds."""
        return len(self.pool().free())

    def check_nothing_left(self, seconds: float) -> None:
        """No process, no lease and no file, `seconds` from now at the latest."""
        wait_until(lambda: not self.processes(), f"the end of {self.processes()}", seconds)
        assert not self.leases.exists() or self.free_npus() == 8
        assert list(self.tmp.iterdir()) == []
        assert in_line(LeaseDirectory(self.leases)) == []
        shared = [file.name for file in Path("/dev/shm").iterdir() if "triton" in file.name or "tdist" in file.name]
        assert shared == []


@pytest.fixture
def suite(tmp_path: Path) -> Iterator[Suite]:
    made = Suite(tmp_path)
    yield made
    for pid in made.processes():
        os.kill(pid, signal.SIGKILL)
