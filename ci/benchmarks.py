"""The benchmark: builds the programs that it compares with, and runs ci/bench in the environment."""

from __future__ import annotations

import nox

from _build_backend import settings
from _build_backend.checkout import ROOT, env
from ci import report
from ci.environment import own_arguments
from ci.installation import Installation

_TARGET = "tdist_bench"


def run(session: nox.Session, installation: Installation) -> None:
    """Measures the rows that the session's arguments name, or all."""
    directory = installation.build_directory
    with report.step(session.name, "programs to compare with"):
        build = ["cmake", "--build", str(directory), "--target", _TARGET, f"-j{settings.resolve().jobs}"]
        session.run(*build, external=True)
    path = [str(ROOT), str(ROOT / "python"), *filter(None, [env.child_environ().get("PYTHONPATH")])]
    with report.step(session.name, "rows against their peers"):
        arguments = ["--programs", str(directory / "bench"), *own_arguments(session)]
        variables = {"PYTHONPATH": ":".join(path)}
        installation.environment.run(session, "-m", "ci.bench", *arguments, variables=variables)
