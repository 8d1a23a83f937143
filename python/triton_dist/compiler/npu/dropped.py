"""Warnings of what a kernel's source says and its compiled form does not: code that the front end drops or changes.

What is left of the source is seen in the IR: Triton's own (`ttir`), and what triton-ascend's adapter makes of it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from triton.compiler.code_generator import get_jit_fn_file_line
from triton.runtime.jit import JITFunction

from triton_dist.compiler.npu.locations import Locations, line_of

SLOT_BYTES = 64
"""How far signal words lie apart: a cache line, of which two cores' writes are not kept coherent."""

_LOOP = ("scf.while", "scf.for")
_OPERATION = re.compile(r'^\s*(?:(?P<result>%[\w$.-]+)(?::\d+)? = )?"?(?P<name>[a-z_]+\.[\w.]+)"?(?P<rest>.*)$')
_VALUE = re.compile(r"%[\w$.-]+")
_CONSTANT = re.compile(r"arith\.constant (-?\d+) :")
_WAIT = re.compile(r'symbol = "tdist_wait_i\d+"')
_SIGNAL = re.compile(r'symbol = "tdist_(?P<call>notify|wait|signal_op|signal_wait_until)_?i?(?P<bits>32|64)?"')
_ASSERTION = re.compile(r"\b(?:cf|tt)\.assert\b")


@dataclass(frozen=True)
class _Definition:
    name: str
    operands: tuple[str, ...]
    text: str


def warnings(kernel: Any, ttir: str, linalg: str) -> list[str]:
    """One line for each thing that is dropped or changed, in the order of the source's lines.

    Args:
        kernel: the function with `@triton.jit`.
        ttir: Triton IR after `make_ttir`, with locations.
        linalg: what the adapter made of it, with locations.
    """
    found = [
        *_removed_loops(ttir, linalg),
        *_removed_assertions(kernel, linalg),
        *_used_atomics(ttir),
        *_forgotten_tokens(ttir),
        *_narrow_strides(ttir),
    ]
    return [f"{place}: {text}" for place, text in sorted(set(found), key=_order)]


def _order(finding: tuple[str, str]) -> tuple[str, int]:
    file, _, line = finding[0].rpartition(":")
    return file, int(line) if line.isdecimal() else 0


def _removed_loops(ttir: str, linalg: str) -> Iterator[tuple[str, str]]:
    left = {place for _, place in _loops(linalg)}
    for name, place in _loops(ttir):
        if name == "scf.while" and place and place not in left:
            yield (
                place,
                "this while loop is removed: the compiler takes what it loads for constant, so the kernel does not "
                "wait here. Wait with dl.wait or signal_wait_until, or spin on tl.atomic_cas",
            )


def _loops(text: str) -> Iterator[tuple[str, str]]:
    """Name and `file:line` of each loop: its location stands where it ends."""
    locations = Locations(text)
    open_: list[str] = []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("}"):
            if stripped.split(" loc(")[0].endswith("{"):
                continue
            name = open_.pop() if open_ else ""
            if name in _LOOP:
                yield name, line_of(locations.place(line))
        elif stripped.endswith("{"):
            found = _OPERATION.match(line)
            open_.append(found["name"] if found else "")


def _removed_assertions(kernel: Any, linalg: str) -> Iterator[tuple[str, str]]:
    locations = Locations(linalg)
    left = {line_of(locations.place(line)) for line in linalg.splitlines() if _ASSERTION.search(line)}
    for place in _assertions(kernel, set()):
        if place not in left:
            yield place, "device_assert is removed: on the NPU nothing is checked here"


def _assertions(function: Any, seen: set[int]) -> Iterator[str]:
    if id(function) in seen:
        return
    seen.add(id(function))
    file, begin = get_jit_fn_file_line(function)
    names = vars(function).get("__globals__", {})
    for node in ast.walk(ast.parse(function.src)):
        if isinstance(node, ast.Assert):
            yield f"{file}:{begin + node.lineno - 1}"
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called == "device_assert":
            yield f"{file}:{begin + node.lineno - 1}"
        elif isinstance(names.get(called), JITFunction):
            yield from _assertions(names[called], seen)


def _used_atomics(ttir: str) -> Iterator[tuple[str, str]]:
    locations = Locations(ttir)
    uses = _uses(ttir)
    for line in ttir.splitlines():
        found = _OPERATION.match(line)
        if found and found["name"] in ("tt.atomic_rmw", "tt.atomic_cas") and uses[found["result"] or ""] > 1:
            when = "after" if found["name"] == "tt.atomic_cas" else "before"
            yield (
                line_of(locations.place(line)),
                f"the value that this atomic returns is not the atomic's: it is read by a plain load {when} it, "
                "between which others may write",
            )


def _forgotten_tokens(ttir: str) -> Iterator[tuple[str, str]]:
    locations = Locations(ttir)
    uses = _uses(ttir)
    for line in ttir.splitlines():
        found = _OPERATION.match(line)
        if found and _WAIT.search(line) and uses[found["result"] or ""] == 1:
            yield (
                line_of(locations.place(line)),
                "nobody consumes the token of this wait: loads that belong behind it may move before it. Load through "
                "dl.consume_token(pointer, token)",
            )


def _uses(ttir: str) -> Counter[str]:
    """How often each value is named, where it is defined included."""
    return Counter(_VALUE.findall("\n".join(line.split(" loc(")[0] for line in ttir.splitlines())))


def _narrow_strides(ttir: str) -> Iterator[tuple[str, str]]:
    locations = Locations(ttir)
    definitions: dict[str, _Definition] = {}
    for line in ttir.splitlines():
        found = _OPERATION.match(line)
        if found is None:
            continue
        operands = tuple(_VALUE.findall(found["rest"].split(" : ")[0]))
        if found["result"]:
            definitions[found["result"]] = _Definition(found["name"], operands, line)
        signal = _SIGNAL.search(line)
        if signal is None or not operands:
            continue
        element = int(signal["bits"] or 32) // 8
        place = line_of(locations.place(line))
        for offset in _offsets(operands[0], definitions):
            if not _fills_slots(offset, element, definitions):
                yield (
                    place,
                    f"the signal words of this {signal['call']} lie less than {SLOT_BYTES} bytes apart: wait looks at "
                    f"every {SLOT_BYTES} bytes, and the NPU keeps no two cores' writes to one cache line coherent. Use "
                    f"slots of {SLOT_BYTES // element} elements (index * {SLOT_BYTES // element})",
                )
                break


def _offsets(address: str, definitions: dict[str, _Definition]) -> Iterator[str]:
    """What has been added to the pointer behind `address`, in elements."""
    definition = definitions.get(address)
    if definition is None:
        return
    if definition.name == "tt.ptr_to_int":
        yield from _offsets(definition.operands[0], definitions)
    elif definition.name == "tt.addptr":
        yield definition.operands[1]
        yield from _offsets(definition.operands[0], definitions)


def _fills_slots(value: str, element: int, definitions: dict[str, _Definition]) -> bool:
    """Whether an offset is a whole number of slots, or may be: it is not said where it cannot be seen."""
    definition = definitions.get(value)
    if definition is None:
        return False  # an argument, a loop's counter: any number
    constant = _CONSTANT.search(definition.text)
    if constant:
        return int(constant[1]) * element % SLOT_BYTES == 0
    if definition.name in ("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast"):
        return _fills_slots(definition.operands[0], element, definitions)
    if definition.name == "arith.muli":
        return any(_fills_slots(operand, element, definitions) for operand in definition.operands)
    if definition.name in ("arith.addi", "arith.subi"):
        return all(_fills_slots(operand, element, definitions) for operand in definition.operands)
    if definition.name == "arith.shli":
        by = _CONSTANT.search(definitions[definition.operands[1]].text) if len(definition.operands) > 1 else None
        return by is None or (1 << int(by[1])) * element % SLOT_BYTES == 0
    # A rank or a program's number counts by ones; of anything else nothing is known.
    return not (definition.name == "tt.get_program_id" or "tdist_my_pe" in definition.text)
