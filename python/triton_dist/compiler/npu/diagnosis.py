"""What a failure of a compiler stage means, in the words and at the line of the kernel's author."""

from __future__ import annotations

import itertools
import linecache
import math
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triton.backends.ascend import compiler as stock
from triton.compiler.code_generator import get_jit_fn_file_line
from triton.compiler.errors import CompilationError
from triton.runtime.jit import JITFunction

from triton_dist.compiler import scratch
from triton_dist.compiler.npu import final_ir
from triton_dist.compiler.npu.locations import Locations, line_of

_OVERFLOW = re.compile(
    r"(?P<space>\w+) overflow, requires (?P<needed>\d+) bits while (?P<available>\d+) bits available", re.IGNORECASE
)
_SPACES = {"ub": "UB", "l1": "L1", "cbuf": "L1", "l0a": "L0A", "ca": "L0A", "l0b": "L0B", "cb": "L0B", "cc": "L0C"}
_ERROR = re.compile(
    r'^(?:loc\((?:callsite\()?"(?P<file>[^"]+)":(?P<line>\d+):\d+.*?\): |(?P<plain>\S+?):(?P<row>\d+):\d+: )'
    r"error: (?P<text>.+)$",
    re.MULTILINE,
)
_BARE_ERROR = re.compile(r"^(?:\[ERROR\]|error:|bishengir-compile\S*:) ?(.+)$", re.MULTILINE)
_ASSERTION = re.compile(r"Assertion .+ failed|LLVM ERROR: .+|UNREACHABLE executed.*")
# What the compiler says besides of each failure, and what it says of a last step that is not there.
_NOISE = ("Failed to run BiSheng", "hivmc", "Executing:", "Failed to detect", "op: ", "Did you mean")
_CRASH = ("PLEASE submit a bug report", "Stack dump:")
_NOT_THERE = re.compile(r"Cannot find hivmc\S* under")
_ALLOCATION = re.compile(
    r'(?P<name>%[\w#]+) = "memref\.alloc"\(.*-> memref<(?P<shape>(?:\d+x)*)(?P<element>[a-z]+\d+)'
    r"[^#]*#hivm\.address_space<(?P<space>\w+)>"
)
_TYPES = {"f32": "fp32", "f16": "fp16", "f64": "fp64"}
_KIB = 1024


@dataclass(frozen=True)
class Overflow:
    """More local memory needed than there is; bytes."""

    space: str
    needed: int
    available: int


@dataclass(frozen=True)
class Tile:
    """A buffer that the kernel needs.

    Attributes:
        shape, element: of the tile.
        place: `file:line:column` of what needs it.
    """

    space: str
    shape: tuple[int, ...]
    element: str
    place: str

    @property
    def size(self) -> int:
        """In bytes."""
        return math.prod(self.shape) * final_ir.bits_of(self.element) // 8


def of_front_end(error: CompilationError, kernel: Any) -> str:
    """The innermost error of Triton's front end, at its line."""
    inner = error
    while isinstance(inner.__cause__, CompilationError):
        inner = inner.__cause__
    function = next((f for f in _functions_near(kernel) if f.src == inner.src), None)
    reason = inner.error_message or (str(inner.__cause__) if inner.__cause__ else "")
    wrapped = re.fullmatch(r"\w+\((['\"])(?P<text>.*)\1,?\)", reason, re.DOTALL)
    text = wrapped["text"] if wrapped else reason
    if function is None or getattr(inner, "node", None) is None:
        return text or str(inner)
    file, begin = get_jit_fn_file_line(function)
    return at(file, begin + inner.node.lineno - 1, text)


def _functions_near(kernel: Any) -> Iterable[Any]:
    """The kernel, and the functions that its module and its callees' modules know."""
    yield kernel
    pending, seen = [kernel], {id(kernel)}
    while pending:
        for value in vars(pending.pop()).get("__globals__", {}).values():
            if isinstance(value, JITFunction) and id(value) not in seen:
                seen.add(id(value))
                pending.append(value)
                yield value


def of_tool(text: str) -> str:
    """What a tool of ours or of triton-ascend says of the kernel; of a crash, the line that tells it."""
    errors = _errors(text)
    if errors:
        return "\n".join(errors)
    return text.partition("\nPLEASE submit a bug report")[0]


def reached_last_step(stderr: str) -> bool:
    """Whether everything but the closed last step has been done."""
    begin = stderr.rfind("// -----// IR Dump After")
    return begin >= 0 and _NOT_THERE.search(stderr, begin) is not None and not _errors(stderr)


def gives_up(returncode: int, stderr: str) -> bool:
    """Whether the compiler has crashed, which no kernel should be able to make it do."""
    return returncode < 0 or any(words in stderr for words in _CRASH)


def of_compiler(stderr: str) -> str:
    """The compiler's errors, with the kernel's lines."""
    errors = _errors(stderr)
    if errors:
        return "\n".join(errors)
    crash = _ASSERTION.search(stderr)
    if crash or any(words in stderr for words in _CRASH):
        return f"bishengir-compile crashes on this kernel: {crash[0] if crash else 'it says nothing of why'}"
    bare = [text for text in _BARE_ERROR.findall(stderr) if not any(word in text for word in _NOISE)]
    if bare:
        return f"bishengir-compile: {bare[0]}"
    said = _BARE_ERROR.findall(stderr)
    return f"bishengir-compile fails and does not say why{': ' + said[-1] if said else ''}"


def _errors(stderr: str) -> list[str]:
    found: dict[str, None] = {}
    for error in _ERROR.finditer(stderr):
        if any(word in error["text"] for word in _NOISE):
            continue
        file, line = (error["file"], error["line"]) if error["file"] else (error["plain"], error["row"])
        text = error["text"].strip()
        found[at(file, int(line), text) if not file.endswith(".mlir") else text] = None
    return list(found)


def at(file: str, line: int, text: str) -> str:
    """The text at a line of the kernel's source, and that line."""
    source = linecache.getline(file, line).strip()
    return f"{_short(file)}:{line}: {text}" + (f"\n  {source}" if source else "")


def _short(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def overflow(stderr: str) -> Overflow | None:
    """The local memory that is too small; None where the compiler has another complaint."""
    found = _OVERFLOW.search(stderr)
    if found is None:
        return None
    space = _SPACES.get(found["space"].lower(), found["space"].upper())
    return Overflow(space, int(found["needed"]) // 8, int(found["available"]) // 8)


def before_memory_planning(command: Sequence[str], lowered: str) -> str:
    """What the compiler prints when it runs again, up to where it lays out local memory."""
    flags = ["--mlir-print-ir-before=hivm-plan-memory", *final_ir.DUMP_FLAGS[1:]]
    kept = [flag for flag in command[2:] if flag not in final_ir.DUMP_FLAGS]
    with scratch.directory() as directory:
        source = Path(directory, "kernel.mlir")
        source.write_text(stock._parse_linalg_metadata(lowered, {})[0])
        kept[kept.index("-o") + 1] = str(Path(directory, "kernel"))
        again = [command[0], str(source), *kept, *flags]
        return subprocess.run(again, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False).stderr


def _tiles(printed: str, space: str) -> list[Tile]:
    """The buffers of the last attempt to lay out `space`, which is one without a second buffer for overlap."""
    for text in reversed(final_ir.dumps(printed)):
        locations = Locations(text)
        tiles = [
            Tile(
                space,
                tuple(int(size) for size in found["shape"].split("x") if size),
                found["element"],
                locations.place(line),
            )
            for line in text.splitlines()
            if (found := _ALLOCATION.search(line)) and _SPACES.get(found["space"]) == space
        ]
        if tiles:
            return tiles
    return []


def explain_overflow(overflow: Overflow, printed: str, constants: Mapping[str, Any]) -> str:
    """Which tile takes the memory, at which line, and what would make the kernel fit."""
    head = (
        f"{overflow.space} overflow: the kernel needs {_size(overflow.needed)}, {_size(overflow.available)} are there"
    )
    tiles = _tiles(printed, overflow.space)
    if not tiles:
        return f"{head}: make its tiles smaller"
    # Of tiles of one size, the first is loaded: it is the one that the author has written down.
    largest = max(tiles, key=lambda tile: tile.size)
    times = math.ceil(math.log2(overflow.needed / overflow.available))
    named = _dimensions(largest, constants)
    if len(named) > 1:
        smaller = f"halve {' or '.join(named)} {_times(times)} in all"
    elif named:
        smaller = f"halve {named[0]} {_times(times)} ({named[0]}={constants[named[0]] >> times})"
    else:
        smaller = f"make the tile {1 << times} times smaller"
    shape = [constants[name] for name in named] if len(named) > 1 else largest.shape
    what = "x".join(map(str, shape)) + f" x {_TYPES.get(largest.element, largest.element)}"
    more = {1: "", 2: ", and another buffer is needed"}.get(len(tiles), f", and {len(tiles) - 1} more are needed")
    text = f"{head}; the tile of {what} takes {_size(largest.size)}{more}: {smaller}"
    if not largest.place:
        return text
    file, _, line = line_of(largest.place).rpartition(":")
    return at(file, int(line), text)


def _dimensions(tile: Tile, constants: Mapping[str, Any]) -> list[str]:
    """The kernel's constants that give the tile its shape, which the compiler may have cut into blocks of 16."""
    sizes = {name: value for name, value in constants.items() if _is_size(value)}
    elements = math.prod(tile.shape)
    for (first, rows), (second, columns) in itertools.combinations(sizes.items(), 2):
        if rows * columns == elements:
            return [first, second]
    return sorted((name for name, size in sizes.items() if size in tile.shape), key=lambda name: -sizes[name])[:1]


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 1


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _size(count: int) -> str:
    return f"{count // _KIB} KiB" if count % _KIB == 0 else f"{count / _KIB:.1f} KiB"
