"""docs/testing.md says what is true: its commands run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from triton_dist import env

PAGE = (Path(__file__).parents[3] / "docs" / "testing.md").read_text()
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
EXAMPLE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
BACKTICKED = re.findall(r"`(TRITON_DIST_\w+|ASCEND_\w+)", PAGE)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(command: str, tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text("def test_nothing(): pass\n")
    if "test_sum.py" in command:
        (tmp_path / "test_sum.py").write_text(EXAMPLE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    program, *arguments = shlex.split(command, comments=True)
    # Hypothesis would be imported at the end of each.
    pytest_call = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
    call = {"pytest": pytest_call, "python": [sys.executable]}[program]
    # Where this very test is run by xdist.
    worker = dict.fromkeys(
        ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST")
    )
    done = subprocess.run(
        [*call, *arguments],
        cwd=tmp_path,
        env=env.child_environ(**worker, TRITON_DIST_LEASE_DIR=tmp_path / "leases", TRITON_DIST_BACKEND="sim"),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_variables_that_are_named_exist() -> None:
    assert set(BACKTICKED) <= set(env.REGISTRY)
    assert len(set(BACKTICKED)) >= 5
