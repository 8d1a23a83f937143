"""triton-ascend's environment variables act on the compile stages of simulated NPUs as on its own."""

# Arguments of kernels have no Python types, and torch gets its `npu` when it is imported.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from triton_dist import env

STAGES = {"ttir", "ttadapter", "llvmdialect", "so"}


@triton.jit
def twice(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.device_print("v", v)
    tl.store(out + i, v * 2)


@triton.jit
def thrice(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) * 3)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Caches of the test alone, so that each stage of each kernel runs once."""
    for name in ("TRITON_CACHE_DIR", "TRITON_DUMP_DIR", "TRITON_OVERRIDE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRITON_HOME", str(tmp_path))
    monkeypatch.setenv("TRITON_DIST_CACHE_DIR", str(tmp_path / "stages"))
    return tmp_path


def run(kernel: Any, **options: Any) -> tuple[list[float], Any]:
    """What the kernel makes of 1, 2, 3, 4 as another process would compile it: the kernel object is new."""
    out = torch.zeros(4, device="npu")
    compiled = triton.jit(kernel.fn)[(1,)](torch.arange(1.0, 5.0).npu(), out, N=4, **options)
    torch.npu.synchronize()
    return out.cpu().tolist(), compiled


def compiles(kernel: Any) -> bool:
    """Whether a process that runs the kernel now runs its last stage."""
    before = newest_library()
    run(kernel)
    return newest_library() != before


def newest_library() -> int:
    folder = env.TRITON_DIST_CACHE_DIR.get() / "kernels"
    return max((path.stat().st_mtime_ns for path in folder.glob("*.so")), default=0)


def files_by_stage(folder: Path) -> dict[str, Path]:
    return {path.suffix[1:]: path for path in folder.rglob("*") if path.suffix[1:] in STAGES}


def test_kernel_dump_writes_each_stage(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(twice)  # what is in the cache is dumped too
    monkeypatch.setenv("TRITON_KERNEL_DUMP", "1")
    _, compiled = run(twice)
    dumped = files_by_stage(home / ".triton" / "dump")
    assert dumped.keys() == STAGES
    assert dumped["llvmdialect"].read_text() == compiled.asm["llvmdialect"]
    assert dumped["so"].read_bytes() == compiled.asm["so"]
    monkeypatch.setenv("TRITON_DUMP_DIR", str(home / "elsewhere"))
    run(twice)
    assert files_by_stage(home / "elsewhere").keys() == STAGES


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_kernel_override_takes_a_stage_from_a_file(home: Path, monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    monkeypatch.setenv("TRITON_KERNEL_DUMP", "1")
    run(twice)
    dumped = files_by_stage(home / ".triton" / "dump")
    other = thrice_as("twice", stage)
    override = home / "mine" / dumped[stage].parent.name / f"twice.{stage}"
    override.parent.mkdir(parents=True)
    override.write_bytes(other)
    monkeypatch.delenv("TRITON_KERNEL_DUMP")
    monkeypatch.setenv("TRITON_KERNEL_OVERRIDE", "1")
    monkeypatch.setenv("TRITON_OVERRIDE_DIR", str(home / "mine"))
    assert run(twice)[0] == [3, 6, 9, 12]
    monkeypatch.delenv("TRITON_KERNEL_OVERRIDE")
    assert run(twice)[0] == [2, 4, 6, 8]  # what was overridden is not in the cache of what was not


def thrice_as(name: str, stage: str) -> bytes:
    """What `stage` makes of the kernel thrice, under another name."""
    _, compiled = run(thrice)
    result = compiled.asm[stage]
    return result if isinstance(result, bytes) else result.replace("thrice", name).encode()


def test_cache_dir_and_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(thrice)
    assert files_by_stage(home / ".triton" / "cache").keys() == STAGES
    monkeypatch.setenv("TRITON_CACHE_DIR", str(home / "elsewhere"))
    run(thrice)
    assert files_by_stage(home / "elsewhere").keys() == STAGES


def test_always_compile_runs_every_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiles(thrice)
    assert not compiles(thrice)
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    assert compiles(thrice)


def test_compile_only_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_COMPILE_ONLY", "1")
    out, compiled = run(thrice)
    assert out == [0] * 4
    assert compiled.asm.keys() >= STAGES


def test_ascend_arch_names_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_ASCEND_ARCH", "Ascend910_9392")
    assert run(thrice)[1].metadata.target.arch == "Ascend910_9392"


@pytest.mark.parametrize("value", ["1", "twice"])
def test_mlir_dump_prints_before_each_pass(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], value: str
) -> None:
    run(twice)
    monkeypatch.setenv("MLIR_ENABLE_DUMP", value)
    run(twice)
    printed = capfd.readouterr().err
    assert "IR Dump Before ConvertTritonCallsToLinalg" in printed
    assert "IR Dump Before ConvertFuncToLLVMPass" in printed


def test_mlir_dump_of_another_kernel_prints_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLIR_ENABLE_DUMP", "twice")
    run(thrice)
    assert "IR Dump" not in capfd.readouterr().err


def test_llvm_dump_prints_before_each_pass(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("LLVM_IR_ENABLE_DUMP", "1")
    run(thrice)
    assert "*** IR Dump Before LoopVectorizePass on tdist_kernel_entry ***" in capfd.readouterr().err


def test_timing_of_mlir_and_llvm(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MLIR_ENABLE_TIMING", "1")
    run(thrice)
    printed = capfd.readouterr().err
    assert "ConvertTritonCallsToLinalg" in printed
    assert "Pass execution timing report" not in printed
    monkeypatch.delenv("MLIR_ENABLE_TIMING")
    monkeypatch.setenv("LLVM_ENABLE_TIMING", "1")
    run(thrice)
    assert "Pass execution timing report" in capfd.readouterr().err


def test_remarks_name_source_lines(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MLIR_ENABLE_REMARK", "1")
    run(twice)
    line = twice.starting_line_number + 4  # device_print keeps its loop from becoming vectors
    assert f"remark: {Path(__file__).name}:{line}:" in capfd.readouterr().err.replace(f"{Path(__file__).parent}/", "")


@pytest.mark.parametrize(
    "name",
    [
        "TRITON_DEBUG",
        "TRITON_ENABLE_LLVM_DEBUG",
        "TRITON_PRINT_AUTOTUNING",
        "TRITON_ALWAYS_COMPILE",
        "TRITON_ASCEND_COMPILE_SPEED_OPT",
        "TRITON_DISABLE_LINE_INFO",
        "TRITON_ALL_BLOCKS_PARALLEL",
        "TRITON_KERNEL_DUMP",
        "TRITON_KERNEL_OVERRIDE",
        "MLIR_ENABLE_TIMING",
    ],
)
def test_a_bad_value_ends_the_launch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is Triton that reads the variable, and would take the value for "off"."""
    monkeypatch.setenv(name, "maybe")
    with pytest.raises(env.EnvironmentVariableError, match=f"{name}='maybe' is not allowed"):
        run(thrice)


def test_reproducers_can_be_run_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_REPRODUCER_PATH", str(home / "new" / "again"))
    _, compiled = run(thrice)
    for stage in ("llvmdialect", "so"):
        command = shlex.split((home / "new" / f"again.{stage}.mlir").read_text().partition("\n")[0].removeprefix("// "))
        output = home / f"made.{stage}"
        subprocess.run([*command, "-o", output], check=True)
        assert output.stat().st_size > 0
    assert (home / "made.llvmdialect").read_text() == compiled.asm["llvmdialect"]


def test_llvm_without_optimisation(monkeypatch: pytest.MonkeyPatch) -> None:
    out, optimised = run(thrice)
    monkeypatch.setenv("DISABLE_LLVM_OPT", "1")
    same, plain = run(thrice)
    assert out == same == [3, 6, 9, 12]
    assert plain.asm["llvmdialect"] == optimised.asm["llvmdialect"]
    assert plain.asm["so"] != optimised.asm["so"]


def test_llvm_without_one_optimisation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISABLE_LLVM_OPT", "disable-lsr,-disable-licm-promotion")
    assert run(thrice)[0] == [3, 6, 9, 12]
    monkeypatch.setenv("DISABLE_LLVM_OPT", "disable-everything")
    with pytest.raises(Exception, match="Unknown command line argument '--disable-everything'"):
        run(thrice)


@triton.jit
def multiply_add(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, v * 1.000244140625 - v)


def test_fusion_by_default_gives_way_to_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    _, plain = run(multiply_add)
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")
    _, fused = run(multiply_add)
    _, asked = run(multiply_add, enable_fp_fusion=False)
    assert fused.metadata.enable_fp_fusion
    assert fused.asm["so"] != plain.asm["so"]
    assert asked.asm["so"] == plain.asm["so"]


def test_debug_compiles_with_assertions(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TRITON_DEBUG", "1")
    _, compiled = run(thrice)
    assert compiled.metadata.debug
    assert "Dumping intermediate results to" in capfd.readouterr().out


def test_locations_of_the_ir(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USE_IR_LOC", "ttir")
    _, compiled = run(thrice)
    assert f'loc("{files_by_stage(home / ".triton" / "cache")["ttir"]}":' in compiled.asm["ttadapter"]
    monkeypatch.setenv("USE_IR_LOC", "llvmdialect")
    with pytest.raises(
        Exception, match="USE_IR_LOC=llvmdialect is not possible on simulated NPUs: use USE_IR_LOC=ttir"
    ):
        run(thrice)


def test_lines_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Path(__file__).name in run(thrice)[1].asm["ttadapter"]
    monkeypatch.setenv("TRITON_DISABLE_LINE_INFO", "1")
    assert Path(__file__).name not in run(thrice)[1].asm["ttadapter"]


@pytest.mark.parametrize(("value", "lines"), [(None, 4), ("1", 4), ("0", 0)])
def test_device_print(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], value: str | None, lines: int
) -> None:
    if value is not None:
        monkeypatch.setenv("TRITON_DEVICE_PRINT", value)
    run(twice)
    assert capfd.readouterr().err.count(" v: ") == lines


def test_compile_speed_opt_does_not_try_a_failed_kernel_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_ASCEND_COMPILE_SPEED_OPT", "1")
    monkeypatch.setenv("DISABLE_LLVM_OPT", "disable-everything")
    with pytest.raises(Exception, match="disable-everything"):
        run(thrice)
    with pytest.raises(Exception, match="already failed once"):
        run(thrice)
