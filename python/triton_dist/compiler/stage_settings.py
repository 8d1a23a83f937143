"""What environment variables ask of the tools that run our compile stages. Their meaning is triton-ascend's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from triton_dist import env
from triton_dist.compiler.errors import KernelCompileError

# Passes that say why a loop was not vectorized: what a performance warning is on a CPU.
_REMARKING_PASSES = "loop-vectorize|slp-vectorizer"
_ON = ("1", "true", "on")
_OFF = ("", "0", "false", "off")


@dataclass(frozen=True)
class Flags:
    """Flags of one tool.

    Attributes:
        result: those that change what the tool makes.
        reports: those that make it print; a tool that has any runs also where its result is in the cache.
    """

    result: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()


def lowering(kernel: str) -> Flags:
    """Flags of tdist-opt for the kernel of that name."""
    silent = env.TRITON_DEVICE_PRINT.is_set() and not env.TRITON_DEVICE_PRINT.get()
    reports: list[str] = []
    if _is_meant(env.MLIR_ENABLE_DUMP.get(), kernel):
        reports.append("--mlir-print-ir-before-all")
    if env.MLIR_ENABLE_TIMING.get():
        reports.append("--mlir-timing")
    # Programs give memory that others see to the runtime, which keeps their stores for as long as the rules allow.
    settings = [*(["print=false"] if silent else []), *(["strict=true"] if env.TRITON_DIST_SIM_STRICT.get() else [])]
    result = ["=".join(["--tdist-to-sim", *([" ".join(settings)] if settings else [])])]
    if env.MLIR_ENABLE_REMARK.get() or env.TRITON_DIST_KERNEL_DEBUG.get():
        result.append("--mlir-print-debuginfo")  # remarks of code generation, and debuggers, name source lines
    return Flags(tuple(result), tuple(reports))


def code_generation(fusion: bool) -> Flags:
    """Flags of tdist-codegen; `fusion`: whether a product and a sum of floats are rounded once."""
    debug = env.TRITON_DIST_KERNEL_DEBUG.get()
    result = _optimisation("1" if debug else env.DISABLE_LLVM_OPT.get())
    if fusion:
        result.append("--fp-fusion")
    if debug:
        result.append("--debug-info")
    reports: list[str] = []
    if env.LLVM_IR_ENABLE_DUMP.get():
        reports.append("--print-before-all")
    if env.LLVM_ENABLE_TIMING.get():
        reports.append("--time-passes")
    if env.MLIR_ENABLE_REMARK.get():
        reports += [f"--pass-remarks{kind}={_REMARKING_PASSES}" for kind in ("", "-missed", "-analysis")]
        if not debug:
            reports.append("--debug-info")
    return Flags(tuple(result), tuple(reports))


def fusion_by_default() -> bool:
    """Whether products and sums are fused where the option enable_fp_fusion is not given."""
    return env.TRITON_DEFAULT_FP_FUSION.is_set() and env.TRITON_DEFAULT_FP_FUSION.get()


def check_locations() -> None:
    """Refuse USE_IR_LOC for a stage whose files have no locations of their own.

    Raises:
        KernelCompileError: it names a stage other than ttir.
    """
    stage = env.USE_IR_LOC.get()
    if stage in ("ttadapter", "llvmdialect", "so"):
        raise KernelCompileError(f"USE_IR_LOC={stage} is not possible on simulated NPUs: use USE_IR_LOC=ttir")


_READ_BY_TRITON: tuple[env.Variable[bool], ...] = (
    env.TRITON_DEBUG,
    env.TRITON_ENABLE_LLVM_DEBUG,
    env.TRITON_PRINT_AUTOTUNING,
    env.TRITON_ALWAYS_COMPILE,
    env.TRITON_ASCEND_COMPILE_SPEED_OPT,
    env.TRITON_DISABLE_LINE_INFO,
    env.TRITON_ALL_BLOCKS_PARALLEL,
)


def fingerprint() -> str:
    """What these variables ask, beside those that Triton's own cache knows of.

    It is part of the key of Triton's cache: a kernel is compiled anew when one of them changes, so that a dump or a
    remark that is asked for appears, and what was made with an override is not taken without it.

    Raises:
        EnvironmentVariableError: a variable that Triton reads holds what it may not: Triton would take it for "off".
    """
    for variable in _READ_BY_TRITON:
        variable.get()
    asked = [lowering(kernel=""), code_generation(fusion=False), env.TRITON_REPRODUCER_PATH.text()]
    if env.TRITON_KERNEL_DUMP.get():
        asked.append(f"dump {env.TRITON_DUMP_DIR.get()}")
    if env.TRITON_KERNEL_OVERRIDE.get():
        asked.append(f"override {_state(env.TRITON_OVERRIDE_DIR.get())}")
    return repr(asked)


def _is_meant(text: str, kernel: str) -> bool:
    return text == kernel if text.lower() not in (*_ON, *_OFF) else text.lower() in _ON


def _optimisation(text: str) -> list[str]:
    """The level, or the flags of LLVM that the variable names, such as disable-lsr."""
    if text.lower() in _ON:
        return ["--opt-level=0"]
    flags = [] if text.lower() in _OFF else [f"--{flag.strip().lstrip('-')}" for flag in text.split(",")]
    return ["--opt-level=3", *flags]


def _state(directory: Path) -> list[tuple[str, int, int]]:
    """Name, time and size of each file below `directory`."""
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files]
