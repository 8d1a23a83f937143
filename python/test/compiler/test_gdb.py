"""gdb stops on a line of a kernel, where kernels are compiled with TRITON_DIST_KERNEL_DEBUG=1."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from triton_dist import env

SCRIPT = Path(__file__).parent / "sum_of_a_row.py"


def test_gdb_stops_on_a_line_of_a_kernel() -> None:
    gdb = shutil.which("gdb")
    if gdb is None:
        pytest.skip("gdb is not installed")
    line = next(i for i, text in enumerate(SCRIPT.read_text().splitlines(), 1) if text.endswith("# BREAK"))
    commands = ["set debuginfod enabled off", "set breakpoint pending on", f"break {SCRIPT.name}:{line}", "run"]
    commands += ["backtrace", "continue", "delete", "continue"]
    result = subprocess.run(
        [gdb, "-q", "-nx", "-batch", *(f"-ex={command}" for command in commands), "--args", sys.executable, SCRIPT],
        env=env.child_environ(TRITON_DIST_KERNEL_DEBUG=1),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if "ptrace: Operation not permitted" in result.stderr:
        pytest.skip("this container does not let gdb start a process (ptrace)")
    output = result.stdout
    where = rf"sum_of_a_row \(\) at \S*{re.escape(SCRIPT.name)}:{line}\n"
    assert len(re.findall(rf"hit Breakpoint 1, {where}", output)) == 2, output + result.stderr
    assert re.search(rf"#0 +{where}", output)
    assert re.search(rf"#1 +\S+ in tdist_kernel_entry \(\) at \S*{re.escape(SCRIPT.name)}", output)
    assert "tl.store(out, total)  # BREAK" in output
    assert "the sum is 120" in output
