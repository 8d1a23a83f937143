"""Kernels as plain Python, in processes of their own: TRITON_INTERPRET acts when a kernel is decorated."""

from __future__ import annotations

import re
import secrets
import subprocess
import sys
from pathlib import Path

from triton_dist import env
from triton_dist.interpreter.device_calls import CALLS

HERE = Path(__file__).parent
MULTIRANK = HERE.parent / "multirank"


def run(*arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    # A session of its own: the programs name a port that another test may have.
    own = {"TRITON_DIST_SESSION": secrets.token_hex(16), "PYTEST_ADDOPTS": None, "PYTEST_XDIST_WORKER": None}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=env.child_environ(TRITON_INTERPRET=1, OMP_NUM_THREADS=1, **own),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def run_pytest(*arguments: str | Path) -> None:
    result = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments)
    assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-2000:]


def test_programs_and_their_language_and_other_ranks() -> None:
    """The last of these run compiled elsewhere, from the same files."""
    ranks = [
        "test_ring and all_gather",
        "told_with and skipped",
        "many_to_one and not torch",
        "put_with_signal-",
        "words_and_comparisons",
    ]
    chosen = " or ".join(["interpreted", *(f"{test} and not 8" for test in ranks)])
    run_pytest(HERE / "interpreted", MULTIRANK, "-k", chosen)


def test_all_that_a_kernel_can_call_is_there() -> None:
    table = HERE.parents[2] / "csrc" / "lib" / "Support" / "RuntimeSymbols.cpp"
    compiled = set(re.findall(r'RuntimeSymbol\{"(tdist_\w+)"', table.read_text()))
    # The compiler makes this one of tl.device_assert, which Triton's interpreter does itself.
    assert compiled - {"tdist_assert_failed"} == set(CALLS)


def test_a_breakpoint_in_a_kernel() -> None:
    """Rank 1 stops at a breakpoint and is stepped over a wait, while rank 0 goes on."""
    commands = "p int(rank)\nnext\nnext\np int(tl.load(dl.consume_token(inbox, token)))\nwhere\ncontinue\n"
    launcher = ("-m", "torch.distributed.run", "--nproc-per-node=2")
    result = run(*launcher, HERE / "ring_with_breakpoint.py", stdin=commands)
    assert result.returncode == 0, result.stdout + result.stderr
    answers = [line.removeprefix("(Pdb) ") for line in result.stdout.splitlines() if line.startswith("(Pdb) ")]
    assert "-> token = dl.wait(signal, 1, scope=" in result.stdout
    assert answers[0] == "1"
    assert "100" in answers
    assert "ring_with_breakpoint.py(" in result.stdout
    assert "hello()" in result.stdout
    assert "rank 0 heard 101" in result.stdout
    assert "rank 1 heard 100" in result.stdout
