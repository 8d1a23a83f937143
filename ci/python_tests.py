"""Runs pytest and puts its counts into the summary; checks the environment that the tests will see."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence

import nox

from _build_backend.checkout import ROOT
from ci import report
from ci.environment import own_arguments
from ci.installation import BUILD_ROOT, Installation, doctor


def run(session: nox.Session, installation: Installation, folders: Sequence[str]) -> None:
    """Runs pytest on `folders`, side by side on the machine's cores unless the user gave `-n`."""
    arguments = own_arguments(session)
    if not any(argument.startswith(("-n", "--numprocesses")) for argument in arguments):
        arguments = ["-n", str(max(2, len(os.sched_getaffinity(0)))), *arguments]
    _run(session, installation, [*arguments, *folders], " ".join(folders))


def run_files(session: nox.Session, installation: Installation, files: Sequence[str]) -> None:
    """Runs pytest on files that no other session runs, one test after the other."""
    _run(session, installation, [*own_arguments(session), *files], " ".join(files))


def _run(session: nox.Session, installation: Installation, arguments: Sequence[str], name: str) -> None:
    results = BUILD_ROOT / "reports" / f"{session.name}.xml"
    results.parent.mkdir(exist_ok=True)
    results.unlink(missing_ok=True)
    with report.step(session.name, f"pytest {name}") as row:
        try:
            installation.environment.run(session, "-m", "pytest", f"--junit-xml={results}", *arguments)
        finally:
            if results.is_file():
                row.result = _counts(results.read_text())


def examine(session: nox.Session, installation: Installation) -> None:
    """The doctor's quick form, and what looks wrong with the variables that are set; ends the session on an error."""
    doctor(session, installation.environment)
    _check_variables(session, installation)


def _check_variables(session: nox.Session, installation: Installation) -> None:
    with report.step(session.name, "environment variables"):
        installation.environment.run(session, "-m", "triton_dist", "env", "--check", "--allow-hints")


def _counts(junit: str) -> str:
    suite = ElementTree.fromstring(junit).find("testsuite")
    if suite is None:
        return "no tests"
    counts = {name: int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")}
    bad = counts["failures"] + counts["errors"]
    passed = counts["tests"] - bad - counts["skipped"]
    parts = [f"{passed} passed"]
    if counts["skipped"]:
        parts.append(f"{counts['skipped']} skipped")
    if bad:
        parts.append(f"{bad} FAILED")
    return ", ".join(parts)


def root_folder(*parts: str) -> str:
    """A folder of the checkout, as pytest prints it: relative to the checkout's root."""
    return str((ROOT / "python" / "test").joinpath(*parts).relative_to(ROOT))
