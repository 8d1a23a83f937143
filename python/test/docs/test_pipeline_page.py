"""docs/pipeline.md shows what the compilers print, and says so where they are missing."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest

from _build_backend import checkout
from triton_dist import commands, env
from triton_dist.compiler.npu import tools

PAGE = (checkout.ROOT / "docs" / "pipeline.md").read_text()
(COMMAND,) = re.findall(r"```sh\n(.*?)\n```", PAGE)
SOURCES = re.findall(r"```python\n(.*?)\n```", PAGE, re.DOTALL)
IRS = re.findall(r"```mlir\n(.*?)\n```", PAGE, re.DOTALL)


@pytest.mark.skipif(tools.wheel_directory() is None, reason="ascendnpu-ir is not installed")
@pytest.mark.parametrize("stage", ["ttir", "linalg"])
def test_the_command_prints_what_is_shown(
    stage: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(checkout.ROOT)
    words = shlex.split(COMMAND)[3:]
    assert words[-2:] == ["--emit", "hivm"]
    assert commands.main([*words[:-1], stage]) == 0
    printed = re.sub(r" loc\([^)]*\)", "", capsys.readouterr().out)
    shown = IRS[["ttir", "linalg"].index(stage)].splitlines()
    assert "@notify_kernel(" in shown[0]
    for line in shown[1:]:
        assert line in printed


def test_each_stage_has_what_the_page_points_at() -> None:
    ttir, notify, wait, lowered, waits_lowered, final, waits_final, *with_data = IRS
    assert 'symbol = "tdist_notify_i64"' in ttir
    assert 'symbol = "tdist_notify_i64"' in notify
    assert 'symbol = "tdist_wait_i64"' in wait
    assert 'symbol = "aclshmem_int64_p"' in lowered
    assert 'symbol = "aclshmem_wait_int64"' in waits_lowered
    assert "call @aclshmem_int64_p(" in final
    assert "call @aclshmem_wait_int64(" in waits_final
    assert [name in with_data[0] for name in ("tdist_delta", "tdist_zero")] == [True, True]
    before, _, after = with_data[2].partition("call @aclshmem_int64_p(")
    assert "call @store_ubuf_to_gm" in before
    assert "call @aclshmem_consume_token_float_ptr_1d(" in after
    # Between the store and the signal.
    assert "pipe_barrier[<PIPE_ALL>]" in before.partition("call @store_ubuf_to_gm")[2]


def test_the_kernels_are_those_of_the_examples() -> None:
    examples = (checkout.ROOT / "python" / "test" / "seed" / "distributed_kernels.py").read_text()
    assert [source in examples for source in SOURCES] == [True, True, False]
    launched = (checkout.PYTHON_DIRECTORY / "triton_dist" / "commands" / "selftest" / "kernels.py").read_text()
    assert SOURCES[2] in launched


def test_nothing_of_one_machine_is_in_it() -> None:
    assert str(checkout.ROOT) not in PAGE
    assert not re.search(r" loc\(|/tmp/|/home/|/root/", PAGE)


def test_a_missing_compiler_is_said() -> None:
    program = (
        "import runpy, sys; from triton_dist.compiler.npu import tools; tools.wheel_directory = lambda: None\n"
        "sys.argv = ['ci.generated', '--check', 'docs/pipeline.md', 'docs/combinations.md']\n"
        "runpy.run_module('ci.generated', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=checkout.ROOT,
        env=env.child_environ(PATH="/usr/bin:/bin"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("docs/pipeline.md cannot be made: bishengir-compile is missing")
    assert "pip install 'triton-dist[compile]'" in done.stderr
    assert done.stdout == "docs/combinations.md is current\n"


def test_links_lead_to_files() -> None:
    for target in re.findall(r"\]\(([^)#:]+)", PAGE):
        assert (checkout.ROOT / "docs" / target).exists(), target
