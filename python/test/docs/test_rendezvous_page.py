"""docs/rendezvous.md says what is true: its program runs by each of its commands, its errors are those of the code."""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from triton_dist import env

CHECKOUT = Path(__file__).parents[3]
PAGE = (CHECKOUT / "docs" / "rendezvous.md").read_text()
COMMANDS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)[0].splitlines()


@pytest.mark.parametrize("line", COMMANDS)
def test_the_program_runs_by_each_command(line: str, tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "meet.py").write_text(program)
    words = shlex.split(line)
    variables = dict(word.split("=", 1) for word in words[: words.index(".venv/bin/torchrun")])
    arguments = words[words.index(".venv/bin/torchrun") + 1 :]
    with socket.socket() as keeper:
        # The port that the page names may be another test's: a free one stands for it, and is kept from others.
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.bind(("127.0.0.1", 0))
        if "SHMEM_UID_SESSION_ID" in variables:
            assert variables["SHMEM_UID_SESSION_ID"] == "127.0.0.1:1234"
            variables["SHMEM_UID_SESSION_ID"] = f"127.0.0.1:{keeper.getsockname()[1]}"
        # The same program in the environment of this test, which need not be the checkout's .venv.
        result = subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", *arguments],
            cwd=tmp_path,
            env=env.child_environ(GLOO_SOCKET_IFNAME="lo", **variables),
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
    assert result.returncode == 0, result.stderr
    assert sorted(re.findall(r"PE \d of \d", result.stdout)) == ["PE 0 of 2", "PE 1 of 2"]
    if "SHMEM_LOG_TO_STDOUT" in variables:
        assert "INFO" in result.stdout
        assert "rank 1 has met the 2 ranks at [::1]:" in result.stdout


def test_its_errors_are_those_of_the_code() -> None:
    package = CHECKOUT / "python" / "triton_dist"
    files = [package / "env" / "addresses.py", package / "runtime" / "session.py"]
    source = "".join(path.read_text() for path in [*files, *sorted((package / "runtime" / "meeting").glob("*.py"))])
    # Texts go over several lines of code.
    source = re.sub(r"\"\s*\n\s*f?\"", "", source)
    rows = re.findall(r"^\| `(.*?)` \|", PAGE.split("## What goes wrong")[1].split("\n## ")[0], re.MULTILINE)
    assert len(rows) >= 10
    for row in rows:
        for part in row.replace("IPv4 address", "…").split("…"):
            assert part.strip() in source, part


def test_its_variables_exist() -> None:
    for name in set(re.findall(r"\b(?:SHMEM|TRITON_DIST|XDG)_[A-Z_]+[A-Z]\b", PAGE)) - {"SHMEM_UID"}:
        assert name in env.REGISTRY, name
