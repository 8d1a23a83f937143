"""Runs for a long time what chance decides: the strict mode with many seeds, and busy machines."""

from __future__ import annotations

import argparse
import os
import secrets

import nox
from nox.command import CommandFailed

from ci import python_tests, report
from ci.environment import own_arguments
from ci.installation import Installation

_BUSY = "test_false_reports.py"


def run(session: nox.Session, installation: Installation) -> None:
    """Runs the parts that the session's arguments name, or both; fails where one of the runs has failed."""
    parser = argparse.ArgumentParser(prog="nox -s soak --", description="Repeats what chance decides.")
    parser.add_argument("parts", nargs="*", metavar="PART", help="strict, false-reports; default: both")
    parser.add_argument("--runs", type=int, default=20, help="of the multi-rank tests in the strict mode (default: 20)")
    parser.add_argument("--busy-runs", type=int, default=100, help="of a job on a busy machine (default: 100)")
    given = parser.parse_args(own_arguments(session))
    parts = {"strict": lambda: _strict(session, installation, given.runs)}
    parts["false-reports"] = lambda: _busy(session, installation, given.busy_runs)
    if unknown := set(given.parts) - set(parts):
        session.error(f"no part {', '.join(sorted(unknown))}: choose from {', '.join(parts)}")
    report.run_each(session, *(part for name, part in parts.items() if name in (given.parts or parts)))


def _strict(session: nox.Session, installation: Installation, runs: int) -> None:
    side_by_side = str(max(2, len(os.sched_getaffinity(0))))
    failed = []
    with report.step(session.name, f"multi-rank tests in the strict mode, {runs} seeds") as row:
        for number in range(1, runs + 1):
            seed = secrets.randbelow(100_000)
            report.note(f"run {number} of {runs}: --sim-strict --sim-seed={seed}")
            strict = ("--sim-strict", f"--sim-seed={seed}", "-n", side_by_side)
            try:
                _pytest(session, installation, *strict, python_tests.root_folder("multirank"))
            except CommandFailed:
                failed.append(seed)
        if failed:
            row.result = f"FAILED with seeds {', '.join(map(str, failed))}"
            raise CommandFailed(row.result)


def _busy(session: nox.Session, installation: Installation, runs: int) -> None:
    with report.step(session.name, f"{runs} jobs of 8 ranks while all cores are busy"):
        _pytest(session, installation, f"--busy-runs={runs}", python_tests.root_folder("multirank", _BUSY))


def _pytest(session: nox.Session, installation: Installation, *arguments: str) -> None:
    installation.environment.run(session, "-m", "pytest", "-q", *arguments)
