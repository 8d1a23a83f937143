"""docs/simulator.md: its command runs, and its numbers are the code's."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from triton_dist import env
from triton_dist.runtime import soc

CHECKOUT = Path(__file__).parents[3]
PAGE = (CHECKOUT / "docs" / "simulator.md").read_text()


def test_the_commands_run() -> None:
    commands = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
    assert commands
    for command in commands:
        *settings, program, script = shlex.split(command)
        assert program == ".venv/bin/python"
        environ = env.child_environ(**dict(setting.split("=", 1) for setting in settings))
        result = subprocess.run(
            [sys.executable, script], cwd=CHECKOUT, env=environ, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stderr
        assert result.stdout == "8 tiles of 64 elements: right\n"


def test_the_table_of_cores_is_right() -> None:
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (\d+) \|$", PAGE, re.MULTILINE)
    model = soc.lookup("Ascend910B3")
    whole = soc.Cores(model.aic_cores, model.aiv_cores)
    modes = {"vector work only": "aiv", "`tl.dot` only": "aic", '`tl.dot` and vector work ("mixed")': "mix"}
    assert {modes[kernel]: int(count) for kernel, _, count in rows} == {
        mode: whole.count_of(soc.of_program(mode)) for mode in modes.values()
    }


def test_every_variable_of_the_page_is_known() -> None:
    names = set(re.findall(r"\b(?:TRITON_DIST|ASCEND_LAUNCH)_[A-Z_]+\b", PAGE))
    assert names
    assert all(hasattr(env, name) for name in names)
