"""Refuses Triton IR whose pointers triton-ascend's adapter would get wrong.

The adapter (3.2.0) follows every pointer back to one kernel argument and an offset in elements. It crashes where that
argument depends on a condition, and on a loop that carries a tensor of pointers and has a call in it that may not be
moved. Where a loop goes on with another argument than it began with, and where an offset was counted in elements of
another size, it compiles the kernel to one that reads and writes elsewhere, silently. All of these are errors here, at
the kernel's line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import NoReturn

from triton_dist.compiler.errors import KernelCompileError

_OPERATION = re.compile(r'(?:(?P<results>%[\w$.-]+)(?::\d+)? = )?"?(?P<name>[a-z_]+\.[\w.]+)"?(?P<rest>.*)')
_VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")
_INITIAL = re.compile(r"(%[\w$.-]+) = (%[\w$.-]+(?:#\d+)?)")
_ARGUMENT = re.compile(r"(%[\w$.-]+): (!tt\.ptr<\w+>)?")
_ELEMENT = re.compile(r"!tt\.ptr<([a-z]+\d*)")
_ALIAS = re.compile(r"^(#\w+) = loc\((.*)\)$")
_FILE_LINE = re.compile(r'"([^"]+)":(\d+):(\d+)')
_TENSOR_OF_POINTERS = re.compile(r"tensor<[\dx]*!tt\.ptr<")
_BITS = re.compile(r"\d+")

_CHOSEN = (
    "a pointer is chosen by a condition (if, tl.where or x if c else y), which NPU kernels cannot do: choose the "
    "offset, not the pointer (base + tl.where(c, i, j)), or load and store in each branch"
)
_REBASED = (
    "a loop goes on with a pointer into another tensor than it began with, which NPU kernels cannot do: choose the "
    "offset, not the pointer (put both tensors into one and change the offset in it)"
)
_CAST_BEFORE_LOOP = (
    "a pointer is cast to another type before a loop that moves it, which NPU kernels cannot do: cast it in the "
    "loop, or change an offset there and add it to the cast pointer"
)
_CAST_AFTER_OFFSET = (
    "a pointer is cast to elements of another size after an offset was added to it, which NPU kernels cannot do: "
    "cast first, then add the offset (counted in the new elements) or call symm_at"
)
_TENSOR_IN_LOOP = (
    "a primitive stands in a loop that moves a tensor of pointers, which NPU kernels cannot do: move the scalar "
    "pointer it was made from, or an offset, and add the tensor of offsets in the loop"
)


@dataclass(frozen=True)
class _Pointer:
    """Where a pointer value comes from.

    Attributes:
        base: the kernel argument or the operation that it starts from.
        cast: whether it has been cast since.
        moved: whether an offset has been added since.
    """

    base: str
    cast: bool = False
    moved: bool = False


@dataclass
class _Region:
    """An open region: the operation that owns it and, for a loop, the pointers that go round.

    Attributes:
        results: SSA name of the operation's results.
        carried: pointers that enter the loop, by position.
        passed: pointers that a while loop's condition hands to its body, by position.
        moves_tensor: whether it is a loop that carries a tensor of pointers.
        problem: what is wrong with the operation; told at its end, where its location stands.
        labelled: whether its first block's label has been seen (or it needs none).
    """

    owner: str
    results: str = ""
    carried: dict[int, _Pointer] = field(default_factory=dict)
    passed: dict[int, _Pointer] = field(default_factory=dict)
    moves_tensor: bool = False
    problem: str = ""
    labelled: bool = False


class _Checker:
    def __init__(self, ttir: str, kernel: str) -> None:
        self.lines = ttir.splitlines()
        self.kernel = kernel
        aliases = (_ALIAS.match(line) for line in self.lines)
        self.aliases = {found[1]: found[2] for found in aliases if found}
        self.last_place = ""
        self.pointers: dict[str, _Pointer] = {}
        self.zeros: set[str] = set()
        self.regions: list[_Region] = []

    def run(self) -> None:
        for line in self.lines:
            text = line.strip()
            if not text or text.startswith(("#", "//", "module")):
                continue
            self.last_place = self.place(text) or self.last_place
            if text.startswith("}"):
                self.close(text)
            elif text.startswith("^"):
                self.label(text)
            elif text.startswith("tt.func"):
                self.function(text)
            elif found := _OPERATION.match(text):
                self.operation(found["results"] or "", found["name"], found["rest"])

    def function(self, text: str) -> None:
        for name, type_ in _ARGUMENT.findall(text):
            if type_:
                self.pointers[name] = _Pointer(name)
        self.regions.append(_Region("tt.func", labelled=True))

    def label(self, text: str) -> None:
        region = self.regions[-1]
        names = [name for name, _ in _ARGUMENT.findall(text)]
        if region.owner == "scf.while" and not region.labelled:
            for position, pointer in region.passed.items():
                self.pointers[names[position]] = pointer
        region.labelled = True

    def close(self, text: str) -> None:
        if not self.regions:
            return
        region = self.regions[-1]
        if text.startswith(("} else {", "} do {", "}, {")):
            region.labelled = False
            return
        self.regions.pop()
        if region.problem:
            self.fail(region.problem, text)
        for position, pointer in (region.passed or region.carried).items():
            self.define(region.results, position, pointer)

    def operation(self, results: str, name: str, rest: str) -> None:
        opens = rest.endswith("{")
        if opens:
            self.regions.append(self.opened(results, name, rest))
        elif name in ("arith.select", "cf.br", "cf.cond_br") and "!tt.ptr<" in rest:
            self.fail(_CHOSEN, rest)
        elif name == "scf.yield":
            self.go_round(rest)
        elif name == "scf.condition":
            values = _VALUE.findall(_before_types(rest))[1:]
            self.regions[-1].passed = {
                i: self.pointers[value] for i, value in enumerate(values) if value in self.pointers
            }
        elif name == "tt.extern_elementwise":
            if "pure = false" in rest and any(region.moves_tensor for region in self.regions):
                self.fail(_TENSOR_IN_LOOP, rest)
            if 'symbol = "tdist_zero"' in rest:
                self.zeros.add(results)
        elif results:
            self.derive(results, name, rest)

    def opened(self, results: str, name: str, rest: str) -> _Region:
        region = _Region(name, results)
        if name == "scf.if" and "!tt.ptr<" in rest:
            region.problem = _CHOSEN
        if name in ("scf.for", "scf.while"):
            region.moves_tensor = _TENSOR_OF_POINTERS.search(rest) is not None
            for position, (argument, value) in enumerate(_INITIAL.findall(rest.split("iter_args", 1)[-1])):
                self.pointers.pop(argument, None)
                if value not in self.pointers:
                    continue
                pointer = self.pointers[value]
                if pointer.cast and not region.problem:
                    region.problem = _CAST_BEFORE_LOOP
                region.carried[position] = self.pointers[argument] = replace(pointer, moved=True)
        return region

    def go_round(self, rest: str) -> None:
        region = self.regions[-1]
        if region.owner not in ("scf.for", "scf.while"):
            return
        values = _VALUE.findall(_before_types(rest))
        for position, pointer in region.carried.items():
            back = self.pointers.get(values[position])
            if (back is None or back.base != pointer.base) and not region.problem:
                region.problem = _REBASED

    def derive(self, results: str, name: str, rest: str) -> None:
        """A pointer that an operation makes belongs to the first pointer among its operands."""
        self.pointers.pop(results, None)
        makes_pointer = "!tt.ptr<" in _result_type(rest) or name in ("tt.make_tensor_ptr", "tt.advance")
        # A load is printed with the type of its address, but what it gives is data.
        if not makes_pointer or name == "tt.load":
            return
        operands = _VALUE.findall(_before_types(rest))
        source = next((self.pointers[o] for o in operands if o in self.pointers), None)
        if source is None:
            source = _Pointer(f"{name} {results}")
        if name == "tt.bitcast":
            if source.moved and len({_bytes(element) for element in _ELEMENT.findall(rest)}) > 1:
                self.fail(_CAST_AFTER_OFFSET, rest)
            source = replace(source, cast=True)
        if name == "tt.addptr" and operands[-1] not in self.zeros:
            source = replace(source, moved=True)
        self.define(results, 0, source)

    def define(self, results: str, position: int, pointer: _Pointer) -> None:
        self.pointers[f"{results}#{position}"] = pointer
        if position == 0:
            self.pointers[results] = pointer

    def fail(self, problem: str, text: str) -> NoReturn:
        where = self.place(text) or self.last_place
        raise KernelCompileError(f"{where}: in kernel {self.kernel}, {problem}")

    def place(self, text: str) -> str:
        """File, line and column of an operation's text, or nothing where they are not known."""
        where = text.rpartition("loc(")[2]
        # Of a call site, the callee's place comes first. Aliases stand for other aliases.
        for _ in range(len(self.aliases) + 1):
            if known := _FILE_LINE.search(where):
                return f"{known[1]}:{known[2]}:{known[3]}"
            inner = re.search(r"#\w+", where)
            if inner is None:
                break
            where = self.aliases.get(inner[0], "")
        return ""


def _before_types(rest: str) -> str:
    return rest.split(" : ", 1)[0]


def _result_type(rest: str) -> str:
    types = rest.rsplit(" : ", 1)[-1].split(" loc(", 1)[0]
    return types.rsplit("->", 1)[-1] if "->" in types else types.split(",", 1)[0]


def _bytes(element: str) -> int:
    bits = _BITS.search(element)
    return max(1, int(bits[0]) // 8) if bits else 0


def check(ttir: str, source_name: str) -> None:
    """Refuse a kernel whose pointers triton-ascend cannot follow.

    Args:
        ttir: Triton IR after `make_ttir`, as text with locations.
        source_name: name of the kernel, for the message.

    Raises:
        KernelCompileError: a pointer is chosen by a condition; a loop goes on with another tensor's pointer than it
            began with, moves a pointer that was cast before it, or has a primitive in it and moves a tensor of
            pointers; a pointer with an offset is cast to elements of
            another size. The message starts with the kernel's file, line and column.
    """
    _Checker(ttir, source_name).run()
