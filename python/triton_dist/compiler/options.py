"""The compiler options of triton-ascend (`NPUOptions`): what each takes, means, and does on simulated NPUs.

They are passed as meta-parameters of a launch, in `triton.Config`, or by `triton.jit(options=...)`. Types and defaults
are those of triton-ascend 3.2; meanings come from its reference of compiler options and from the flags of
bishengir-compile that it makes of them. This module needs neither Triton nor torch.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

FLAG = "flag"
INTEGER = "integer"
TEXT = "text"
WORDS = "words"
INTEGERS = "integers"
MAPPING = "mapping"

_NPU_ONLY = "no effect: it steers bishengir-compile, which simulated NPUs do not use"
_GPU_ONLY = "no effect: an option of Triton's GPU backends, which no NPU reads"
_ADAPTER = "acts: it steers triton-adapter-opt, which makes the IR for simulated NPUs too"


@dataclass(frozen=True)
class Option:
    """One compiler option.

    Attributes:
        name: the keyword.
        kind: the type in a word, for tables: flag, integer, text, words (of a tuple), integers, mapping.
        default: what triton-ascend takes where the option is not given; None where the compiler decides.
        meaning: what it does on an NPU, in one sentence.
        effect: what it does on simulated NPUs: begins with `acts` or `no effect`, and says how or why.
        choices: the texts or words allowed; empty where any is.
        least: the least integer allowed.
    """

    name: str
    kind: str
    default: Any
    meaning: str
    effect: str
    choices: tuple[str, ...] = ()
    least: int | None = None

    @property
    def acts(self) -> bool:
        """Whether a simulated NPU, or its compiler, behaves differently for it."""
        return self.effect.startswith("acts")

    @property
    def allowed(self) -> str:
        """The values allowed, in words."""
        return _ALLOWED[self.kind](self) + (" or None" if self.default is None else "")

    def check(self, value: Any) -> None:
        """Accept a value of this option.

        Raises:
            TypeError: `value` is of another type; the message names option, value and what is allowed.
            ValueError: it is of the right type and not one of the values allowed.
        """
        if value is None and self.default is None:
            return
        if not _HAS_TYPE[self.kind](value):
            raise TypeError(
                f"compiler option {self.name} is {value!r} ({type(value).__name__}): it takes {self.allowed}"
            )
        if not self._is_allowed(value):
            raise ValueError(f"compiler option {self.name} is {value!r}: it takes {self.allowed}")

    def _is_allowed(self, value: Any) -> bool:
        if self.least is not None and (min(value) if self.kind == INTEGERS else value) < self.least:
            return False
        if not self.choices:
            return True
        return value in self.choices if self.kind == TEXT else set(value) <= set(self.choices)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _all(value: Any, of: Callable[[Any], bool]) -> bool:
    return isinstance(value, (tuple, list)) and len(value) > 0 and all(of(item) for item in value)


_HAS_TYPE: dict[str, Callable[[Any], bool]] = {
    FLAG: lambda value: isinstance(value, bool),
    INTEGER: _is_integer,
    TEXT: lambda value: isinstance(value, str),
    WORDS: lambda value: _all(value, lambda item: isinstance(item, str)),
    INTEGERS: lambda value: _all(value, _is_integer),
    MAPPING: lambda value: isinstance(value, Mapping),
}


def _of(option: Option, any_: str) -> str:
    return ", ".join(repr(choice) for choice in option.choices) if option.choices else any_


_ALLOWED: dict[str, Callable[[Option], str]] = {
    FLAG: lambda option: "True, False" if option.default is None else "True or False",
    INTEGER: lambda option: "an integer" if option.least is None else f"an integer of {option.least} or more",
    TEXT: lambda option: _of(option, "a text"),
    WORDS: lambda option: f"a tuple of {_of(option, 'texts')}",
    INTEGERS: lambda option: "a tuple of integers" + ("" if option.least is None else f" of {option.least} or more"),
    MAPPING: lambda option: "a dict",
}


def _optional_flag(name: str, meaning: str) -> Option:
    return Option(name, FLAG, None, meaning, _NPU_ONLY)


def _for_gpus(name: str, kind: str, default: Any, meaning: str, least: int | None = None) -> Option:
    return Option(name, kind, default, meaning, _GPU_ONLY, least=least)


_ALL = (
    # What a kernel computes.
    Option(
        "allowed_dot_input_precisions",
        WORDS,
        ("ieee", "hf32"),
        "The values of input_precision that tl.dot may be given in this kernel.",
        "acts: another precision is a compile error; hf32 rounds the float32 operands of a dot to 11 bits of mantissa",
        choices=("ieee", "hf32"),
    ),
    Option(
        "allow_fp8e4nv",
        FLAG,
        False,
        "Whether a kernel may use the type float8e4nv (e4m3).",
        "no effect: triton-ascend 3.2 refuses all 8-bit floats, and nothing reads the option",
    ),
    Option(
        "debug",
        FLAG,
        False,
        "Compile tl.device_assert, and write the IR of each stage to TRITON_DUMP_DIR; TRITON_DEBUG=1 turns it on.",
        "acts: a failed tl.device_assert ends the launch with its text, source line and program",
    ),
    Option(
        "sanitize_overflow",
        FLAG,
        True,
        "With debug: assert that tl.add, tl.sub and tl.mul of integers up to 32 bits do not overflow.",
        "acts with debug: an overflow ends the launch as a failed tl.device_assert does",
    ),
    Option(
        "enable_fp_fusion",
        FLAG,
        True,
        "Whether a product and a sum of floats may be fused, so that they are rounded once.",
        "acts where it is given, or TRITON_DEFAULT_FP_FUSION is set; else each operation rounds, as on the NPU",
    ),
    Option(
        "max_num_imprecise_acc_default",
        INTEGER,
        None,
        "How many products of 8-bit floats tl.dot may sum in less than float32.",
        "no effect: a dot always sums in float32",
        least=0,
    ),
    Option(
        "extern_libs",
        MAPPING,
        None,
        "Libraries of extern functions by name.",
        "no effect: extern_call names the library of each function",
    ),
    # What the front half makes of it.
    Option(
        "compile_mode",
        TEXT,
        "simd",
        "How a kernel uses the vector cores; sets parallel_mode, force_simt_template and force_simt_only.",
        "acts: `simt_only` has no linalg IR and is a compile error on simulated NPUs",
        choices=("simd", "unstructured_in_simt", "simt_only"),
    ),
    Option(
        "parallel_mode",
        TEXT,
        "simd",
        "How programs use the vector cores: SIMD or SIMT; use compile_mode.",
        "no effect: the IR is the same",
        choices=("simd", "simt", "mix_simd_simt"),
    ),
    Option(
        "force_simt_only",
        FLAG,
        False,
        "Compile the whole kernel for SIMT.",
        "acts: it has no linalg IR and is a compile error on simulated NPUs",
    ),
    Option(
        "force_simt_template",
        FLAG,
        False,
        "Compile unstructured loads and stores for SIMT.",
        _ADAPTER,
    ),
    Option("enable_linearize", FLAG, False, "Linearize the offsets of loads and stores.", _ADAPTER),
    Option(
        "enable_nd2nz_on_vector",
        FLAG,
        False,
        "Bring the operands of a dot into the cube's layout on the vector cores.",
        _ADAPTER,
    ),
    Option("enable_select_analysis", FLAG, False, "Analyse tl.where in masks and offsets.", _ADAPTER),
    Option("compile_on_910_95", FLAG, False, "Compile for Ascend950.", _ADAPTER),
    # What the NPU compiler makes of it.
    Option("multibuffer", FLAG, True, "Overlap loads and computation with two buffers each.", _NPU_ONLY),
    Option(
        "enable_auto_bind_sub_block",
        FLAG,
        True,
        "Divide the vector part of a mixed kernel between the two vector cores of a cube core.",
        _NPU_ONLY,
    ),
    _optional_flag("enable_hivm_auto_cv_balance", "Balance the work of cube and vector cores."),
    _optional_flag("sync_solver", "Place synchronization with the graph solver."),
    _optional_flag("unit_flag", "Synchronize the cube's results with unit flags."),
    _optional_flag("inject_barrier_all", "Put a barrier of all pipes between operations."),
    _optional_flag("inject_block_all", "Put synchronization of all cores between operations."),
    _optional_flag("disable_auto_inject_block_sync", "Place no synchronization between cube and vector cores."),
    _optional_flag("limit_auto_multi_buffer_only_for_local_buffer", "Use several buffers in local memory only."),
    Option(
        "limit_auto_multi_buffer_of_local_buffer",
        TEXT,
        None,
        "Which local memory gets several buffers.",
        _NPU_ONLY,
        choices=("no-limit", "no-l0c"),
    ),
    Option(
        "set_workspace_multibuffer",
        INTEGER,
        None,
        "How many buffers the workspace between cube and vector cores has; documented are 2 and 4.",
        _NPU_ONLY,
        least=1,
    ),
    Option(
        "tile_mix_vector_loop",
        INTEGER,
        None,
        "In how many parts the vector loop of a mixed kernel is cut; documented are 2, 4 and 8.",
        _NPU_ONLY,
        least=1,
    ),
    Option(
        "tile_mix_cube_loop",
        INTEGER,
        None,
        "In how many parts the cube loop of a mixed kernel is cut; documented are 2, 4 and 8.",
        _NPU_ONLY,
        least=1,
    ),
    # How it is launched and named.
    Option(
        "stream",
        INTEGER,
        None,
        "The NPU stream to launch on, as torch.npu.Stream.npu_stream gives it.",
        "acts: the launch takes its place in that stream",
        least=0,
    ),
    Option("kernel_name", TEXT, "triton_", "The kernel's name.", "no effect: the compiler sets it"),
    Option("llvm_version", INTEGER, 15, "LLVM of an old CPU road of triton-ascend.", "no effect: nothing reads it"),
    # Triton's own, which the kernels of other backends may carry.
    _for_gpus("num_warps", INTEGER, 4, "Warps of a program.", least=1),
    _for_gpus("num_stages", INTEGER, 1, "Stages of a software pipeline.", least=0),
    _for_gpus("num_ctas", INTEGER, 1, "Blocks of a cluster.", least=1),
    _for_gpus("warp_size", INTEGER, 32, "Threads of a warp.", least=1),
    _for_gpus("cluster_dims", INTEGERS, (1, 1, 1), "Shape of a cluster.", least=1),
    _for_gpus("num_buffers_warp_spec", INTEGER, 0, "Buffers of specialized warps.", least=0),
    _for_gpus("num_consumer_groups", INTEGER, 0, "Consumers among specialized warps.", least=0),
    _for_gpus("reg_dec_producer", INTEGER, 0, "Registers that a producing warp gives up.", least=0),
    _for_gpus("reg_inc_consumer", INTEGER, 0, "Registers that a consuming warp gains.", least=0),
    _for_gpus("enable_warp_specialization", FLAG, False, "Specialize warps."),
    _for_gpus("enable_persistent", FLAG, False, "Keep programs resident."),
    _for_gpus("optimize_epilogue", FLAG, False, "Optimize the stores at a kernel's end."),
)

OPTIONS: Mapping[str, Option] = {option.name: option for option in _ALL}
"""All options by name, in the order of the documentation's table."""


def nearest(name: str, others: Iterable[str] = ()) -> str:
    """The known name that is most like `name`: of an option, or one of `others`."""
    return difflib.get_close_matches(name, [*others, *OPTIONS], n=1, cutoff=0.0)[0]


def check(given: Mapping[str, Any], where: str, others: Iterable[str] = ()) -> None:
    """Accept the options `given`.

    Args:
        given: values by name.
        where: who takes them, for the message: "kernel add", "triton.Config".
        others: further names that may have been meant, such as those of the kernel's parameters.

    Raises:
        TypeError: one is unknown or of a wrong type; the message names it, its value and the nearest known name.
        ValueError: one has a value that is not allowed.
    """
    for name, value in given.items():
        option = OPTIONS.get(name)
        if option is None:
            raise TypeError(
                f"{where} has no parameter or compiler option {name} (given as {value!r}): "
                f"the nearest known name is {nearest(name, others)}"
            )
        option.check(value)
