"""Variables that act on build and installation (`nox -s build`, `pip install -e ./python`)."""

from __future__ import annotations

from . import kinds
from .variable import BOTH, BUILD, NOTHING, Declare

_build = Declare("triton", BUILD, acts_on=BOTH)
_no_counterpart = Declare("triton", BUILD, acts_on=NOTHING)

LLVM_SYSPATH = _build(
    "LLVM_SYSPATH",
    kinds.DIRECTORY,
    unset="the distribution's prefix, such as /usr/lib/llvm-19",
    since="triton 2.1",
    meaning="Prefix of the LLVM and MLIR to build against; nothing is fetched.",
)
TRITON_BUILD_WITH_CLANG_LLD = _build(
    "TRITON_BUILD_WITH_CLANG_LLD",
    kinds.FLAG,
    unset="on where the LLVM prefix has them",
    since="triton 2.1",
    meaning="Build with clang and lld instead of the default compiler and linker.",
)
TRITON_BUILD_WITH_CCACHE = _build(
    "TRITON_BUILD_WITH_CCACHE",
    kinds.FLAG,
    unset="on where ccache is installed",
    since="triton 2.2",
    meaning="Compile through ccache.",
)
TRITON_APPEND_CMAKE_ARGS = _build(
    "TRITON_APPEND_CMAKE_ARGS",
    kinds.text("arguments for cmake, separated by spaces and quoted as in a shell"),
    since="triton 3.0",
    meaning="Further arguments of the CMake configure step.",
)
TRITON_OFFLINE_BUILD = _build(
    "TRITON_OFFLINE_BUILD",
    kinds.FLAG,
    default="OFF",
    since="triton 3.1",
    meaning="Forbid every download during the build.",
)
MAX_JOBS = _build(
    "MAX_JOBS",
    kinds.integer(1),
    unset="number of cores",
    since="triton 2.0",
    meaning="How many compile jobs run at once.",
)
TRITON_PARALLEL_LINK_JOBS = _build(
    "TRITON_PARALLEL_LINK_JOBS",
    kinds.integer(1),
    unset="no limit",
    since="triton 3.2",
    meaning="How many links run at once; they need much memory.",
)
DEBUG = _build(
    "DEBUG",
    kinds.FLAG,
    default="OFF",
    since="triton 2.0",
    meaning="Build type Debug.",
)
REL_WITH_DEB_INFO = _build(
    "REL_WITH_DEB_INFO",
    kinds.FLAG,
    default="OFF",
    since="triton 2.1",
    meaning="Build type RelWithDebInfo.",
)
TRITON_REL_BUILD_WITH_ASSERTS = _build(
    "TRITON_REL_BUILD_WITH_ASSERTS",
    kinds.FLAG,
    default="OFF",
    since="triton 2.1",
    meaning="Build type TritonRelBuildWithAsserts: optimised, with assertions.",
)
TRITON_BUILD_WITH_O1 = _build(
    "TRITON_BUILD_WITH_O1",
    kinds.FLAG,
    default="OFF",
    since="triton 3.0",
    meaning="Build type TritonBuildWithO1: optimised a little, quick to build.",
)
TRITON_DIST_TORCH_INDEX = _build(
    "TRITON_DIST_TORCH_INDEX",
    kinds.text("the URL of a package index or the path of a directory of wheels"),
    unset="pip's index",
    owner="triton-dist",
    since="0.1.0",
    meaning="Where the build takes torch from when the environment has none.",
)
VIRTUAL_ENV = _build(
    "VIRTUAL_ENV",
    kinds.DIRECTORY,
    owner="python",
    since="Python 3.3",
    meaning="The active virtual environment; the build installs into it.",
)
CONDA_PREFIX = _build(
    "CONDA_PREFIX",
    kinds.DIRECTORY,
    owner="conda",
    since="conda 4.1",
    meaning="The active conda environment; the build installs into it.",
)

# -------------------------------------------------------------- upstream's that have no counterpart here

TRITON_BUILD_PROTON = _no_counterpart(
    "TRITON_BUILD_PROTON",
    kinds.FLAG,
    default="OFF",
    since="triton 3.0",
    note="Proton profiles GPUs, and the triton-ascend wheel, which is used as it is, comes without it.",
    meaning="Build the profiler Proton.",
)
TRITON_BUILD_LITTLE_KERNEL = _no_counterpart(
    "TRITON_BUILD_LITTLE_KERNEL",
    kinds.FLAG,
    owner="Triton-distributed",
    default="OFF",
    since="Triton-distributed 2025",
    note="The little-kernel language generates code for CUDA.",
    meaning="Build the little-kernel language of Triton-distributed.",
)
TRITON_BUILD_NPUIR = _no_counterpart(
    "TRITON_BUILD_NPUIR",
    kinds.FLAG,
    owner="triton-ascend",
    default="OFF",
    since="triton-ascend of 2026",
    note="AscendNPU-IR is not built: kernels go to the NPU's compiler as text.",
    meaning="Build AscendNPU-IR along with triton-ascend.",
)
TRITON_BUILD_TD = _no_counterpart(
    "TRITON_BUILD_TD",
    kinds.FLAG,
    owner="triton-ascend",
    default="OFF",
    since="triton-ascend of 2026",
    note="The distributed part is this package, and triton-ascend's wheel is used as it is.",
    meaning="Build the distributed part along with triton-ascend.",
)
TRITON_USE_ASCEND = _no_counterpart(
    "TRITON_USE_ASCEND",
    kinds.FLAG,
    owner="Triton-distributed",
    default="OFF",
    since="Triton-distributed 2025",
    note="The Ascend backend is the only one, and comes with triton-ascend's wheel.",
    meaning="Select the Ascend backend.",
)
TRITON_PLUGIN_DIRS = _no_counterpart(
    "TRITON_PLUGIN_DIRS",
    kinds.text("directories separated by semicolons"),
    since="triton 3.1",
    note="Triton is not built here, so that nothing can be built into it.",
    meaning="Directories of backends that are built into triton.",
)
TRITON_WHEEL_NAME = _no_counterpart(
    "TRITON_WHEEL_NAME",
    kinds.text("the name of a distribution"),
    default="triton-dist",
    since="triton 2.1",
    note="python/pyproject.toml names the wheel.",
    meaning="Name of the wheel.",
)
TRITON_WHEEL_VERSION_SUFFIX = _no_counterpart(
    "TRITON_WHEEL_VERSION_SUFFIX",
    kinds.text("the end of a version"),
    since="triton 2.1",
    note="The version is that of python/triton_dist/__init__.py.",
    meaning="What the wheel's version ends with.",
)
IS_MANYLINUX = _no_counterpart(
    "IS_MANYLINUX",
    kinds.FLAG,
    owner="triton-ascend",
    default="OFF",
    since="triton-ascend 3.2.0",
    note="The build links LLVM of the machine, which no manylinux tag allows.",
    meaning="Tag the wheel as manylinux.",
)
JSON_SYSPATH = _no_counterpart(
    "JSON_SYSPATH",
    kinds.DIRECTORY,
    since="triton 3.0",
    note="Nothing here uses nlohmann-json.",
    meaning="Where nlohmann-json is, for a build without a network.",
)
