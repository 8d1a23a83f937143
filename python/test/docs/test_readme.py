"""README.md says what is true: its kernel is the tutorial's, its commands exist, its output is what comes out."""

from __future__ import annotations

import re
import secrets
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from triton_dist import env
from triton_dist.compiler.npu import tools

CHECKOUT = Path(__file__).parents[3]
README = (CHECKOUT / "README.md").read_text()


def block_after(heading: str, language: str, number: int = 0) -> str:
    section = README.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    blocks: list[str] = re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)
    return blocks[number]


def test_the_kernel_is_the_tutorials() -> None:
    tutorial = (CHECKOUT / "python" / "tutorials" / "hello_ring.py").read_text()
    assert block_after("A kernel", "python") in tutorial


def test_the_run_command_prints_what_is_shown() -> None:
    program, *arguments = shlex.split(block_after("A kernel", "sh"))
    assert program == ".venv/bin/torchrun"
    # The same program in the environment of this test, which need not be the checkout's .venv.
    command = [sys.executable, "-m", "torch.distributed.run", *arguments]
    # A session of its own: the program names a port that another test may have.
    environ = env.child_environ(TRITON_DIST_SESSION=secrets.token_hex(16))
    result = subprocess.run(
        command, cwd=CHECKOUT, env=environ, capture_output=True, text=True, timeout=240, check=False
    )
    assert result.returncode == 0, result.stderr
    # Ranks share the terminal: a line's end may come after another's text.
    printed = re.findall(r"rank \d+ of \d+ heard from rank \d+", result.stdout)
    assert sorted(printed) == block_after("A kernel", "text").splitlines()


@pytest.mark.parametrize(
    ("heading", "printed"), [("Environment variables", "checked "), ("When something is wrong", "triton is imported")]
)
def test_the_checks_run(heading: str, printed: str) -> None:
    program, *arguments = shlex.split(block_after(heading, "sh"))
    assert program == ".venv/bin/python"
    result = subprocess.run([sys.executable, *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert result.returncode in (0, 1), result.stderr
    assert printed in result.stdout


@pytest.mark.skipif(tools.wheel_directory() is None, reason="ascendnpu-ir is not installed")
def test_the_kernel_compiles_for_a_real_soc() -> None:
    line, check = block_after("Compiled for a real SoC", "sh").splitlines()
    program, *arguments = shlex.split(line)
    assert program == ".venv/bin/python"
    result = subprocess.run([sys.executable, *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "1 ok" in result.stdout
    assert re.search(r'@nox\.session\(name="compile-check"\)', _noxfile())
    assert check.startswith("ci/nox -s compile-check ")


def test_the_two_commands_name_sessions_that_exist() -> None:
    sessions = set(re.findall(r'^@nox\.session(?:\(name="([\w-]+)"\))?\ndef (\w+)', _noxfile(), re.MULTILINE))
    known = {name or function for name, function in sessions}
    for line in [line for number in (0, 1) for line in block_after("Two commands", "sh", number).splitlines()]:
        words = shlex.split(line, comments=True)
        script, flag, *named = words[: words.index("--")] if "--" in words else words
        assert (CHECKOUT / script).exists()
        assert flag == "-s"
        assert set(named) <= known


def _noxfile() -> str:
    return (CHECKOUT / "noxfile.py").read_text()


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert (CHECKOUT / target).exists(), target
