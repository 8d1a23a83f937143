"""`python -m triton_dist compile`: kernels compiled for real SoCs by the installed compiler, as users see it."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from triton_dist import commands, env
from triton_dist.compiler.errors import KernelCompileError
from triton_dist.compiler.npu import signal_order, tools

FILE = Path(__file__).with_name("sample_kernels.py")
SOURCE = FILE.read_text().splitlines()
A2, A3, A5 = "Ascend910B3", "Ascend910_9392", "Ascend950PR_9589"

pytestmark = pytest.mark.skipif(
    tools.wheel_directory() is None, reason="ascendnpu-ir is not installed: pip install 'triton-dist[compile]'"
)


def line_of(text: str) -> int:
    """The line of the sample file that has `text`."""
    return next(number for number, line in enumerate(SOURCE, 1) if text in line)


@pytest.fixture
def compile_(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Runs the command on kernels of the sample file; gives exit code, rows, and what was printed."""

    def call(kernels: str, *arguments: str, file: Path = FILE) -> tuple[int, list[dict[str, Any]], str]:
        report = tmp_path / "rows.json"
        report.unlink(missing_ok=True)
        paths = [f"{file}::{kernel}" if kernel else str(file) for kernel in kernels.split(" ")]
        try:
            code = commands.main(["compile", *paths, "--json", str(report), *arguments])
        except SystemExit as end:
            code = int(str(end.code))
        said = capsys.readouterr()
        rows = json.loads(report.read_text()) if report.exists() else []
        return code, rows, said.out + said.err

    return call


def test_what_a_kernel_takes_of_each_soc(compile_: Any) -> None:
    code, rows, said = compile_("add matmul", *("--target", A2, "--target", A3))
    assert code == 0
    assert [(row["kernel"], row["target"], row["state"]) for row in rows] == [
        (kernel, soc, "ok") for kernel in ("add", "matmul") for soc in (A2, A3)
    ]
    vector, _, cube, _ = rows
    # A tile of 1024 x 4 bytes is loaded; its double may take its place. The SoC's sizes are in its data sheet.
    assert vector["core"] == "aiv"
    assert 4096 <= vector["ub_used"] <= 2 * 4096
    assert vector["ub_available"] == 192 * 1024
    assert cube["core"] == "aic"
    assert cube["l1_used"] == (32 * 64 + 64 * 32) * 2
    assert cube["l0c_used"] == 32 * 32 * 4
    assert (cube["l1_available"], cube["l0c_available"]) == (512 * 1024, 128 * 1024)
    assert "4 / 192 KiB" in said or "8 / 192 KiB" in said
    assert said.splitlines()[-1] == "4 ok"


def test_the_launch_path_s_flags_are_used(compile_: Any) -> None:
    code, (row,), _ = compile_("add", "--option", "multibuffer=False", "--option", "unit_flag=True")
    assert code == 0
    flags = row["command"][2:]
    assert flags[0] == f"--target={A2}"
    assert "--enable-auto-multi-buffer=False" in flags
    assert "--enable-hivm-unit-flag-sync=True" in flags
    assert "--enable-triton-kernel-compile=true" in flags
    assert not any("print-ir" in flag for flag in flags)


def test_an_a5_soc_has_its_own_sizes_and_flags(compile_: Any) -> None:
    code, (row,), _ = compile_("add", "--target", A5)
    assert code == 0
    assert row["ub_available"] == 248 * 1024
    assert "--enable-hivm-compile=true" not in row["command"]


def test_symbols_and_signals_of_a_distributed_kernel(compile_: Any) -> None:
    code, rows, said = compile_("signals_after_data", "--target", A2, "--target", A3)
    assert code == 0, said
    for row in rows:
        symbols = " ".join(row["symbols"])
        for symbol in ("my_pe", "n_pes", "ptr_float", "int64_p", "wait_int64"):
            assert f"aclshmem_{symbol}" in symbols


@pytest.mark.parametrize(
    ("kernel", "constant", "blamed"),
    [("add", "BLOCK=131072", "tl.store(y + i, doubled"), ("in_a_loop", "TILE=65536", "tl.load(x + i) + 1.0")],
)
def test_an_overflow_names_the_tile_and_what_would_fit(compile_: Any, kernel: str, constant: str, blamed: str) -> None:
    code, (row,), said = compile_(kernel, "--signature", constant)
    assert (code, row["state"]) == (1, "failed")
    assert row["ub_used"] > row["ub_available"] == 192 * 1024
    name, size = constant.split("=")
    message = row["message"]
    assert re.search(rf"sample_kernels.py:({line_of('return x + x')}|{line_of(blamed)}): UB overflow", message), message
    assert f"the tile of {size} x fp32 takes" in message
    suggested = re.search(rf"\({name}=(\d+)\)", message)
    assert suggested is not None
    assert message.splitlines()[0] in said.replace(f"{Path.cwd()}/", "") or "UB overflow" in said
    code, (row,), _ = compile_(kernel, "--signature", f"{name}={suggested[1]}")
    assert (code, row["state"]) == (0, "ok")


def test_a_mistyped_option_is_named(compile_: Any) -> None:
    code, (row,), _ = compile_("add", "--option", "multibufer=True")
    assert (code, row["state"]) == (1, "failed")
    assert "multibufer" in row["message"]
    assert "multibuffer" in row["message"]


def test_an_unknown_symbol_is_named_with_its_line(compile_: Any) -> None:
    code, (row,), _ = compile_("calls_elsewhere")
    assert (code, row["state"]) == (1, "failed")
    assert "nobody_has_this" in row["message"]
    assert f"sample_kernels.py:{line_of('tl.store(x, elsewhere')}: " in row["message"]


_LAST_STEP = """\
#!{python}
import pathlib, sys
with pathlib.Path({record!r}).open("a") as record:
    print(*sys.argv[1:], file=record)
if "--version" in sys.argv:
    print("hivmc 1.2.0")
elif {makes_a_binary}:
    pathlib.Path(sys.argv[sys.argv.index("-o") + 1] + ".o").write_bytes(b"binary")
"""


@pytest.mark.parametrize("makes_a_binary", [True, False])
def test_where_the_last_step_is_there_it_is_run(
    compile_: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, makes_a_binary: bool
) -> None:
    record = tmp_path / "hivmc.log"
    program = tmp_path / "bin" / "hivmc"
    program.parent.mkdir()
    text = _LAST_STEP.format(python=sys.executable, record=str(record), makes_a_binary=makes_a_binary)
    program.write_text(text)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{env.child_environ()['PATH']}")
    code, (row,), said = compile_("add")
    assert "--enable-triton-kernel-compile=true" in record.read_text()
    if makes_a_binary:
        assert (code, row["state"], row["linked"]) == (0, "ok", True), said
    else:
        assert (code, row["state"], row["linked"]) == (1, "failed", False)
        assert row["message"] == f"{program} made no binary"


def test_a_kernel_s_data_in_the_staging_buffer_is_an_error(compile_: Any) -> None:
    code, (row,), _ = compile_("puts")
    assert (code, row["state"]) == (1, "failed")
    assert "bytes 0 to 16384 of UB (aclshmem's staging buffer)" in row["message"]
    mended = re.search(r"aclshmemx_set_mte_config\((\d+), (\d+), 0\)", row["message"])
    assert mended is not None
    assert int(mended[1]) + int(mended[2]) == 192 * 1024
    for setting in ("end", f"{mended[1]}:{mended[2]}"):
        code, (row,), _ = compile_("puts", "--staging", setting)
        assert (code, row["state"]) == (0, "ok")
        assert "aclshmem_float_putmem" in row["symbols"]


def test_a_signal_before_its_data_is_an_error(tmp_path: Path) -> None:
    output = tmp_path / "final.mlir"
    assert commands.main(["compile", f"{FILE}::signals_after_data", "--emit", "llvm", "--output", str(output)]) == 0
    final = output.read_text()
    signal_order.check(final)
    unordered = "\n".join(line for line in final.splitlines() if "hivm.hir.pipe_barrier" not in line)
    with pytest.raises(KernelCompileError, match=rf"sample_kernels.py:{line_of('dl.notify(signal, right)')}:"):
        signal_order.check(unordered)


def test_an_error_of_the_front_end_begins_with_the_kernel_s_line(compile_: Any) -> None:
    code, (row,), _ = compile_("chooses_a_pointer")
    assert (code, row["state"]) == (1, "failed")
    assert re.match(rf"\S*sample_kernels.py:{line_of('chosen = x if')}:.*choose the offset", row["message"])


def test_what_the_front_end_drops_is_said(compile_: Any) -> None:
    _, (row,), said = compile_("loses_much")
    lines = {
        line_of("while tl.load(flag"): "while loop is removed",
        line_of("tl.device_assert"): "device_assert is removed",
        line_of("old = tl.atomic_add"): "the value that this atomic returns",
        line_of("dl.notify(signal + n, 0)"): "slots of 8 elements",
        line_of("dl.wait(signal, 2"): "nobody consumes the token",
    }
    assert len(row["warnings"]) == len(lines), row["warnings"]
    for (line, text), warning in zip(sorted(lines.items()), row["warnings"], strict=True):
        assert f"sample_kernels.py:{line}: " in warning
        assert text in warning
    assert said.count("warning ") == len(lines)


def test_nothing_is_said_of_what_stays(compile_: Any) -> None:
    code, (row,), _ = compile_("loses_nothing")
    assert (code, row["warnings"]) == (0, [])


def test_types_come_from_the_command_line_or_from_a_call(compile_: Any) -> None:
    code, rows, said = compile_("needs_types", "--signature", "*bf16, *fp32, BLOCK=64 * 2")
    assert (code, [row["state"] for row in rows]) == (0, ["ok"]), said
    code, rows, said = compile_("", "--call", "main()")
    # Three launches, of which two are the same kernel; what follows them fails, and is told.
    assert code == 0, said
    assert [row["kernel"] for row in rows] == ["needs_types", "needs_types"]
    assert "--enable-auto-multi-buffer=False" in rows[1]["command"]
    assert "note: the call ends with AssertionError: nothing was launched" in said


def test_each_configuration_of_an_autotuned_kernel_is_compiled(compile_: Any) -> None:
    code, rows, _ = compile_("tuned")
    assert code == 0
    assert [row["kernel"] for row in rows] == ["tuned[BLOCK=64]", "tuned[BLOCK=128]"]
    flags = [next(f for f in row["command"] if "multi-buffer" in f) for row in rows]
    assert flags == ["--enable-auto-multi-buffer=True", "--enable-auto-multi-buffer=False"]


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        ("ttir", "tt.func public @add"),
        ("linalg", "func.func @add(%arg0: memref<?xi8>"),
        ("llvm", '"hivm.hir.pointer_cast"'),
        ("hivm", "bufferization.to_tensor"),
    ],
)
def test_the_ir_of_a_stage(capsys: pytest.CaptureFixture[str], tmp_path: Path, stage: str, text: str) -> None:
    output = tmp_path / "add.mlir"
    assert commands.main(["compile", f"{FILE}::add", "--emit", stage, "--output", str(output)]) == 0
    assert text in output.read_text()
    assert capsys.readouterr().out == ""


def test_the_ir_for_hivm_has_the_device_library_s_calls(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.main(["compile", f"{FILE}::signals_after_data", "--emit", "hivm"]) == 0
    assert 'symbol = "aclshmem_int64_p"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kernel", "arguments", "text"),
    [
        ("ad", [], "has no kernel ad: did you mean add?"),
        ("add", ["--target", "Ascend910B33"], "makes no code for 'Ascend910B33': did you mean Ascend910B3?"),
        ("needs_types", [], "nothing says of what type x, y, BLOCK are"),
        ("needs_types", ["--signature", "*fb16"], "no type '*fb16'; did you mean *fp16?"),
        ("add", ["--signature", "m=i32"], "no parameter 'm': did you mean"),
        ("add", ["--option", "multibuffer"], "give NAME=VALUE"),
        ("add", ["--staging", "here"], "give OFFSET:SIZE"),
        ("", ["--call", "man()"], "NameError: name 'man' is not defined"),
        ("add", ["--call", "main()"], "launches no kernel of that name"),
    ],
)
def test_wrong_usage(compile_: Any, kernel: str, arguments: list[str], text: str) -> None:
    code, rows, said = compile_(kernel, *arguments)
    assert (code, rows) == (2, [])
    assert text in said


def test_a_file_that_is_not_there(compile_: Any, tmp_path: Path) -> None:
    code, _, said = compile_("", file=tmp_path / "nothing.py")
    assert code == 2
    assert f"there is no file {tmp_path / 'nothing.py'}" in said


def test_a_program_that_works_when_it_is_imported(compile_: Any, tmp_path: Path) -> None:
    """Of a program without `if __name__ == "__main__"`, that needs its job, the kernels are compiled all the same."""
    file = tmp_path / "a_job.py"
    kernel = "import triton\nimport triton.language as tl\n@triton.jit\ndef one(x: '*i32'):\n    tl.store(x, 1)\n"
    file.write_text(kernel + "raise RuntimeError('no job')\n")
    code, rows, said = compile_("", file=file)
    assert (code, [row["kernel"] for row in rows]) == (0, ["one"]), said
    assert "ends with RuntimeError: no job" in said
