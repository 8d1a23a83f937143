"""The IR that bishengir-compile hands to its closed last step: memory that is taken, cores, symbols that are called.

It is read in MLIR's generic form with locations, as `DUMP_FLAGS` have it printed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from triton_dist.compiler.npu.locations import Locations

LAST_PASS = "convert-hivm-to-std"
DUMP_FLAGS = (f"--mlir-print-ir-after={LAST_PASS}", "--mlir-print-op-generic", "--mlir-print-debuginfo")

UB, L1, L0A, L0B, L0C = "UB", "L1", "L0A", "L0B", "L0C"
_SPACES = {"ub": UB, "cbuf": L1, "ca": L0A, "cb": L0B, "cc": L0C}

_BEGIN = re.compile(r"^// -----// IR Dump (?:After|Before) .*$", re.MULTILINE)
# What the compiler says itself stands behind the IR, on lines of their own.
_END = re.compile(r"^(?:\[[A-Z]+\] |loc\(|PLEASE |Stack dump)", re.MULTILINE)
_SIZE = re.compile(r'#dlti\.dl_entry<"(UB|L1|L0A|L0B|L0C)_SIZE", (\d+)')
_CONSTANT = re.compile(r'(%[\w#]+) = "arith\.constant"\(\) <\{value = (-?\d+) : i(?:64|32|ndex)')
_POINTER_CAST = re.compile(
    r'"hivm\.hir\.pointer_cast"\((?P<operands>[^)]*)\).*?-> '
    r"memref<(?P<shape>(?:[\d?]+x)*)(?P<element>[a-z]+\d+)[^#]*#hivm\.address_space<(?P<space>\w+)>"
)
_CORE = re.compile(r"hivm\.module_core_type = #hivm\.module_core_type<(\w+)>")
_CALL = re.compile(r'"func\.call"\(.*?\) <\{callee = @"?(?P<name>[\w.]+)"?')
_DEVICE_FUNCTION = re.compile(r"^(?:_mlir_ciface_)?((?:aclshmemx?|tdist)_\w+?)(?:\.cube|\.vector)?$")
_BITS = re.compile(r"\d+")
_CORES = {"AIV": "aiv", "AIC": "aic", "MIX": "mix"}


class Area(NamedTuple):
    """Bytes of a local memory that a buffer takes, and the kernel's line that it is for ("" where not known)."""

    space: str
    begin: int
    end: int
    place: str


@dataclass(frozen=True)
class FinalIR:
    """What is known of a compiled kernel.

    Attributes:
        text: the IR, in generic form.
        areas: the buffers.
        available: bytes that the SoC has of each local memory.
        core: `aiv`, `aic` or `mix`.
        symbols: device functions of aclshmem, and ours over these, that are called, without prefix and without the
            core's suffix; sorted.
    """

    text: str
    areas: tuple[Area, ...]
    available: dict[str, int]
    core: str
    symbols: tuple[str, ...]

    def used(self, space: str) -> int:
        """Bytes from the beginning of a local memory to the end of the last buffer in it."""
        return max((area.end for area in self.areas if area.space == space), default=0)


def dumps(stderr: str) -> list[str]:
    """The modules and functions that the compiler has printed, in order."""
    parts = _BEGIN.split(stderr)[1:]
    return [_END.split(part, maxsplit=1)[0].strip("\n") for part in parts]


def read(text: str) -> FinalIR:
    """What the IR says."""
    core = _CORE.search(text)
    return FinalIR(
        text=text,
        areas=tuple(_areas(text)),
        available={name: int(bits) // 8 for name, bits in _SIZE.findall(text)},
        core=_CORES.get(core[1], core[1].lower()) if core else "",
        symbols=tuple(sorted(_symbols(text))),
    )


def _symbols(text: str) -> set[str]:
    found = (_DEVICE_FUNCTION.match(call["name"]) for call in _CALL.finditer(text))
    return {name[1] for name in found if name}


def _areas(text: str) -> Iterator[Area]:
    locations = Locations(text)
    constants = {name: int(value) for name, value in _CONSTANT.findall(text)}
    for line in text.splitlines():
        cast = _POINTER_CAST.search(line)
        if cast is None or cast["space"] not in _SPACES:
            continue
        shape = [int(size) for size in cast["shape"].split("x") if size and size != "?"]
        size = math.prod(shape) * bits_of(cast["element"]) // 8
        operands = [operand.strip() for operand in cast["operands"].split(",")]
        # A buffer that is there twice, for the next turn of a loop, has an address for each.
        for begin in (constants[operand] for operand in operands if operand in constants):
            yield Area(_SPACES[cast["space"]], begin, begin + size, locations.place(line))


def bits_of(element: str) -> int:
    """Bits of an element type, such as f16, bf16 or i8; a bit takes a byte's eighth."""
    found = _BITS.search(element)
    return int(found[0]) if found else 0
