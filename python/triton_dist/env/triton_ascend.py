"""Variables of triton-ascend that act while a program runs: those of triton that it keeps, and its own."""

from __future__ import annotations

from . import kinds
from .variable import BOTH, HARDWARE, RUN, Declare

_ascend = Declare("triton-ascend", RUN, acts_on=BOTH)
_hardware = Declare("triton-ascend", RUN, acts_on=HARDWARE)

# -------------------------------------------------------------------------------- debugging, logging

TRITON_DEBUG = _ascend(
    "TRITON_DEBUG",
    kinds.FLAG_ONE,
    default="0",
    since="triton 2.1",
    meaning="Compile kernels with their device_assert in.",
)
MLIR_ENABLE_DUMP = _ascend(
    "MLIR_ENABLE_DUMP",
    kinds.text("1, 0, or the name of a kernel"),
    default="0",
    since="triton 2.0",
    meaning="Print the IR before each MLIR pass, of all kernels or of one.",
)
LLVM_IR_ENABLE_DUMP = _ascend(
    "LLVM_IR_ENABLE_DUMP",
    kinds.FLAG_ONE_TRUE_ON,
    default="0",
    since="triton 2.1",
    meaning="Print the LLVM IR before each LLVM pass.",
)
TRITON_REPRODUCER_PATH = _ascend(
    "TRITON_REPRODUCER_PATH",
    kinds.FILE,
    since="triton 3.0",
    meaning="Where the MLIR of each stage is written before the stage runs, to run it again by hand.",
)
TRITON_INTERPRET = _ascend(
    "TRITON_INTERPRET",
    kinds.FLAG_ONE,
    default="0",
    since="triton 2.2",
    meaning="Run kernels in triton's interpreter, where Python's debugger can stop in them.",
)
TRITON_ENABLE_LLVM_DEBUG = _ascend(
    "TRITON_ENABLE_LLVM_DEBUG",
    kinds.FLAG_ONE_TRUE_ON,
    default="0",
    since="triton 3.0",
    note="The tools of simulated NPUs are built on a release of LLVM, which has no such output: triton's passes do.",
    meaning="Give LLVM its option -debug.",
)
TRITON_LLVM_DEBUG_ONLY = _ascend(
    "TRITON_LLVM_DEBUG_ONLY",
    kinds.text("names of passes or components, separated by commas"),
    since="triton 3.0",
    note="As TRITON_ENABLE_LLVM_DEBUG.",
    meaning="Restrict LLVM's debug output to these, like its option -debug-only.",
)
USE_IR_LOC = _ascend(
    "USE_IR_LOC",
    kinds.text("the extension of a stage, such as ttir, or 0"),
    default="0",
    since="triton 3.2",
    note="On simulated NPUs the stage can be ttir only.",
    meaning="Let source lines mean lines of that stage's IR file instead of lines of the Python source.",
)
TRITON_PRINT_AUTOTUNING = _ascend(
    "TRITON_PRINT_AUTOTUNING",
    kinds.FLAG_ONE,
    default="0",
    since="triton 3.0",
    meaning="Print the best configuration of a kernel and the time that autotuning took.",
)
MLIR_ENABLE_REMARK = _ascend(
    "MLIR_ENABLE_REMARK",
    kinds.FLAG_ONE_TRUE_ON,
    default="0",
    since="the documentation of triton-ascend 3.2.0, whose wheel does not read it",
    note="On simulated NPUs the remarks say which loops became vectors, and why others did not.",
    meaning="Print the remarks of compiler passes.",
)
TRITON_KERNEL_DUMP = _ascend(
    "TRITON_KERNEL_DUMP",
    kinds.FLAG_ONE,
    default="0",
    since="triton 3.0",
    meaning="Write what each compile stage makes of a kernel into TRITON_DUMP_DIR.",
)
TRITON_HOME = _ascend(
    "TRITON_HOME",
    kinds.DIRECTORY,
    default="~",
    since="triton 3.2",
    meaning="Where triton makes its directory .triton.",
)
TRITON_DUMP_DIR = _ascend(
    "TRITON_DUMP_DIR",
    kinds.DIRECTORY,
    default=".triton/dump",
    below=TRITON_HOME,
    since="triton 3.2",
    meaning="Directory that TRITON_KERNEL_DUMP writes into.",
)
TRITON_DEVICE_PRINT = _ascend(
    "TRITON_DEVICE_PRINT",
    kinds.FLAG_ONE_TRUE,
    default="0",
    since="triton-ascend 3.2.0rc2",
    note="On simulated NPUs device_print prints unless this is 0.",
    meaning="Let device_print print, up to 16 KiB a thread.",
)

# ----------------------------------------------------------------------------------------- compilation

TRITON_ALWAYS_COMPILE = _ascend(
    "TRITON_ALWAYS_COMPILE",
    kinds.FLAG_ONE,
    default="0",
    since="triton 3.0",
    meaning="Compile kernels in each process, whatever is in the cache.",
)
DISABLE_LLVM_OPT = _ascend(
    "DISABLE_LLVM_OPT",
    kinds.text("1, 0, or flags of LLVM separated by commas, such as disable-lsr"),
    default="0",
    since="triton 3.0",
    meaning="Leave out LLVM's optimisations, or those that the flags name.",
)
MLIR_ENABLE_TIMING = _ascend(
    "MLIR_ENABLE_TIMING",
    kinds.FLAG_ONE_TRUE_ON,
    default="0",
    since="triton 3.0",
    meaning="Print how long each MLIR pass took.",
)
LLVM_ENABLE_TIMING = _ascend(
    "LLVM_ENABLE_TIMING",
    kinds.FLAG_ONE_TRUE_ON,
    default="0",
    since="triton 3.0",
    meaning="Print how long each LLVM pass took.",
)
TRITON_DEFAULT_FP_FUSION = _ascend(
    "TRITON_DEFAULT_FP_FUSION",
    kinds.FLAG_ONE_TRUE_ON,
    default="1",
    since="triton 3.2",
    note="On simulated NPUs they may only where this is set, or the compiler option enable_fp_fusion given.",
    meaning="Whether a multiplication and an addition may become one operation with one rounding.",
)
TRITON_KERNEL_OVERRIDE = _ascend(
    "TRITON_KERNEL_OVERRIDE",
    kinds.FLAG_ONE,
    default="0",
    since="triton 2.2",
    meaning="Take what a compile stage would make of a kernel from TRITON_OVERRIDE_DIR, where a file of it is there.",
)
TRITON_OVERRIDE_DIR = _ascend(
    "TRITON_OVERRIDE_DIR",
    kinds.DIRECTORY,
    default=".triton/override",
    below=TRITON_HOME,
    since="triton 3.2",
    meaning="Directory that TRITON_KERNEL_OVERRIDE reads from.",
)
TRITON_CACHE_DIR = _ascend(
    "TRITON_CACHE_DIR",
    kinds.DIRECTORY,
    default=".triton/cache",
    below=TRITON_HOME,
    since="triton 2.0",
    meaning="Triton's cache of compiled kernels.",
)
TRITON_ASCEND_COMPILE_SPEED_OPT = _ascend(
    "TRITON_ASCEND_COMPILE_SPEED_OPT",
    kinds.FLAG_ONE_TRUE,
    default="0",
    since="triton-ascend 3.2.0rc2",
    meaning="Do not compile a kernel again that failed to compile before.",
)
TRITON_COMPILE_ONLY = _ascend(
    "TRITON_COMPILE_ONLY",
    kinds.FLAG_ONE_TRUE,
    default="0",
    since="triton-ascend 3.2.0",
    meaning="Compile kernels and do not run them.",
)
TRITON_DISABLE_FFTS = _hardware(
    "TRITON_DISABLE_FFTS",
    kinds.FLAG_ONE_TRUE,
    default="0",
    since="triton-ascend 3.2.0",
    note="Simulated NPUs start programs without the task scheduler FFTS.",
    meaning="Synchronise the cores of an NPU without FFTS.",
)
TRITON_ASCEND_ARCH = _ascend(
    "TRITON_ASCEND_ARCH",
    kinds.text("the name of a SoC, such as Ascend910B3"),
    unset="the SoC that there is, simulated or real",
    since="triton-ascend 3.2.0",
    meaning="The SoC to compile for where no device can be asked.",
)
TRITON_NPU_COMPILER_PATH = _hardware(
    "TRITON_NPU_COMPILER_PATH",
    kinds.DIRECTORY,
    unset="where PATH finds bishengir-compile",
    since="triton-ascend 3.2.0rc2",
    note="Simulated NPUs need no compiler of CANN.",
    meaning="Where the NPU's compiler is, where PATH does not find it.",
)
TRITON_DISABLE_LINE_INFO = _ascend(
    "TRITON_DISABLE_LINE_INFO",
    kinds.FLAG_ONE_TRUE,
    default="1",
    since="triton 2.1",
    note="On simulated NPUs they stay in unless this is set.",
    meaning="Leave source lines out of the kernel's IR.",
)

# --------------------------------------------------------------------------------------------- running

TRITON_ALL_BLOCKS_PARALLEL = _ascend(
    "TRITON_ALL_BLOCKS_PARALLEL",
    kinds.FLAG_ONE_TRUE,
    default="0",
    since="triton-ascend 3.2.0rc4",
    note="Simulated NPUs run the programs of any grid in order; triton refuses more than 65535 without this.",
    meaning="Start as many programs as there are cores and let each do the work of several.",
)
TRITON_ENABLE_TASKQUEUE = _hardware(
    "TRITON_ENABLE_TASKQUEUE",
    kinds.FLAG_ONE_TRUE,
    default="1",
    since="triton-ascend 3.2.0rc2",
    note="Simulated NPUs have no task queue of torch_npu.",
    meaning="Launch kernels through torch_npu's task queue.",
)
TRITON_ENABLE_SANITIZER = _hardware(
    "TRITON_ENABLE_SANITIZER",
    kinds.FLAG_ONE_TRUE,
    default="0",
    since="triton-ascend 3.2.0rc2",
    note="It is a sanitizer of the NPU's compiler.",
    meaning="Compile kernels with CANN's sanitizer in.",
)
ENABLE_PRINT_UB_BITS = _hardware(
    "ENABLE_PRINT_UB_BITS",
    kinds.FLAG_ONE_TRUE,
    default="0",
    since="triton-ascend 3.2.0",
    note="The NPU's compiler is what knows the use of UB.",
    meaning="Ask the NPU's compiler how much of UB a kernel uses.",
)
TRITON_BENCH_METHOD = _hardware(
    "TRITON_BENCH_METHOD",
    kinds.choice("default", "npu"),
    default="default",
    since="triton-ascend 3.2.0rc2",
    note="npu asks the profiler of torch_npu.",
    meaning="How triton.testing.do_bench measures: by time, or with the NPU's profiler.",
)
TRITON_REMOTE_RUN_CONFIG_PATH = _hardware(
    "TRITON_REMOTE_RUN_CONFIG_PATH",
    kinds.FILE,
    since="the documentation of triton-ascend 3.2.0, whose wheel does not read it",
    note="Simulated NPUs are never remote.",
    meaning="Configuration of a remote machine that runs the kernels.",
)
