"""The commands of docs/ascend.md do what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from ci.compile_check import kernels
from triton_dist import commands
from triton_dist.compiler.npu import tools

CHECKOUT = Path(__file__).parents[3]
PAGE = (CHECKOUT / "docs" / "ascend.md").read_text()
COMMANDS = re.findall(r"```sh\n(.*?)\n```", PAGE)
COMPILED = [shlex.split(command)[3:] for command in COMMANDS if "triton_dist compile" in command]


@pytest.mark.skipif(tools.wheel_directory() is None, reason="ascendnpu-ir is not installed")
@pytest.mark.parametrize("words", COMPILED, ids=lambda words: words[1].rpartition("/")[2])
def test_the_command_compiles(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(CHECKOUT)
    assert commands.main(words) == 0
    said = capsys.readouterr().out
    if "--emit" in words:
        assert 'symbol = "aclshmem_int64_p"' in said
    else:
        assert re.search(rf"^{words.count('--target') or 1} ok", said, re.MULTILINE), said


def test_the_other_commands_are_the_session_that_reads_the_list_and_what_another_test_runs() -> None:
    others = [command for command in COMMANDS if "triton_dist compile" not in command]
    # For the second see python/test/commands/test_selftest.py.
    assert others == ["nox -s compile-check", "python -m triton_dist selftest"]
    assert str(kernels.LIST.relative_to(CHECKOUT)) in PAGE
