"""docs/environment.md is what code says, its commands run, and a change of the code alone does not pass the check."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest

from _build_backend import checkout
from triton_dist import env
from triton_dist.compiler import options

PAGE = (checkout.ROOT / "docs" / "environment.md").read_text()
PREFIX = "$ python -m triton_dist"
COMMANDS = [line for line in PAGE.splitlines() if line.startswith(PREFIX)]


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs this interpreter at the checkout's root, with none of the variables that the page is about."""
    environ = env.child_environ(**dict.fromkeys(env.REGISTRY, None))
    return subprocess.run(
        [sys.executable, *arguments], cwd=checkout.ROOT, env=environ, capture_output=True, text=True, check=False
    )


def rows(heading: str) -> list[str]:
    """What the first column of a section's tables names."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)


def test_the_page_is_current() -> None:
    result = python("-m", "ci.generated", "--check")
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    "change",
    [
        "variable = env.REGISTRY.pop('SHMEM_LOG_LEVEL'); variable.name = 'SHMEM_LOG_LEVELS';"
        " env.REGISTRY['SHMEM_LOG_LEVELS'] = variable",
        "env.SHMEM_LOG_LEVEL.default = 'WARN'",
        "from triton_dist.compiler import options; options.OPTIONS.pop('multibuffer')",
    ],
)
def test_a_change_without_regenerating_fails_the_check_with_a_diff(change: str) -> None:
    program = (
        "import runpy, sys; from triton_dist import env\n"
        f"{change}\n"
        "sys.argv = ['ci.generated', '--check', 'docs/environment.md']\n"
        "runpy.run_module('ci.generated', run_name='__main__')"
    )
    result = python("-c", program)
    assert result.returncode == 1
    removed = [line for line in result.stdout.splitlines() if line.startswith("-| ")]
    assert len(removed) == 1
    assert re.match(r"-\| `(SHMEM_LOG_LEVEL|multibuffer)` \|", removed[0])
    assert "run `nox -s generate`" in result.stderr


def test_every_check_of_style_checks_the_page_too() -> None:
    linters = (checkout.ROOT / "ci" / "linters.py").read_text()
    checks = re.search(r"checks = \((.*?)\)", linters)
    assert checks is not None
    assert "_generated" in checks[1].split(", ")
    assert "lint" in (checkout.ROOT / ".ci" / "run").read_text().split()


def test_the_tables_have_every_variable_and_option_once() -> None:
    assert rows("Run time") == [v.name for v in env.variables(env.RUN)]
    assert sorted(rows("Build time")) == sorted(v.name for v in env.variables(env.BUILD))
    assert rows("Compiler options") == list(options.OPTIONS)


@pytest.mark.parametrize("line", COMMANDS)
def test_the_commands_run(line: str) -> None:
    arguments = shlex.split(line, comments=True)[2:]
    result = python(*arguments)
    assert result.returncode == 0, result.stderr
    assert result.stdout


def test_there_are_commands() -> None:
    assert len(COMMANDS) == 6


def test_links_lead_to_files() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", PAGE):
        assert (checkout.ROOT / "docs" / target).exists(), target
