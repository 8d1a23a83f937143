"""For which types and constants a kernel is compiled: from its annotations, or from a text."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from triton.language import core
from triton.runtime.jit import type_canonicalisation_dict

TYPES = frozenset(type_canonicalisation_dict.values())


class SignatureError(ValueError):
    """A kernel's parameters cannot be given types; the text says which, and how to."""


@dataclass(frozen=True)
class Signature:
    """Types of the parameters that are no constants, and values of those that are."""

    types: dict[str, str] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)


def of_annotations(kernel: Any) -> Signature:
    """What the kernel's annotations and defaults say; parameters of which they say nothing are in neither dict.

    A parameter's type is a text such as `"*fp16"`, a type of triton.language, or int, float or bool; a constexpr has
    its default.
    """
    types: dict[str, str] = {}
    constants: dict[str, Any] = {}
    for parameter in kernel.params:
        annotation = kernel.fn.__annotations__.get(parameter.name)
        if parameter.is_constexpr:
            if parameter.has_default:
                constants[parameter.name] = parameter.default
        elif (type_ := _type(annotation)) is not None:
            types[parameter.name] = type_
        elif parameter.has_default and isinstance(parameter.default, (int, float)):
            types[parameter.name] = _of_number(parameter.default)
    return Signature(types, constants)


def _of_number(value: float) -> str:
    if isinstance(value, bool):
        return "i1"
    return "i32" if isinstance(value, int) else "fp32"


def _type(annotation: Any) -> str | None:
    if isinstance(annotation, core.pointer_type):
        return f"*{_type(annotation.element_ty)}"
    if isinstance(annotation, core.dtype):
        annotation = str(annotation.name)
    plain = {int: "i32", float: "fp32", bool: "i1", "int": "i32", "float": "fp32", "bool": "i1"}.get(annotation)
    if plain is not None:
        return plain
    if isinstance(annotation, str):
        text = annotation.strip().strip("\"'").removeprefix("tl.")
        return text if _is_type(text) else type_canonicalisation_dict.get(text)
    return None


def _is_type(text: str) -> bool:
    return text.removeprefix("*") in TYPES


def of_text(kernel: Any, text: str, namespace: Mapping[str, Any]) -> Signature:
    """What `text` says: `x=*fp16, n=i32, BLOCK=1024`, or the same by position, without names.

    A constexpr's value is a Python expression over `namespace`, such as `tl.float16`.

    Raises:
        SignatureError: there is no such parameter, a type is not known, or a value is no expression.
    """
    names = [parameter.name for parameter in kernel.params]
    constexprs = {parameter.name for parameter in kernel.params if parameter.is_constexpr}
    types: dict[str, str] = {}
    constants: dict[str, Any] = {}
    for position, item in enumerate(_items(text)):
        name, equals, value = item.partition("=")
        if not equals:
            if position >= len(names):
                raise SignatureError(
                    f"kernel {kernel.__name__} takes {len(names)} parameters: {item!r} is one too many"
                )
            name, value = names[position], item
        name, value = name.strip(), value.strip()
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.0)
            raise SignatureError(f"kernel {kernel.__name__} has no parameter {name!r}: did you mean {near[0]}?")
        if name not in constexprs and _is_type(value):
            types[name] = value
            continue
        try:
            constants[name] = eval(value, dict(namespace))
        except Exception as error:
            if name in constexprs:
                raise SignatureError(f"{name}={value}: a constexpr takes a Python expression ({error})") from error
            near = difflib.get_close_matches(value, [*TYPES, *(f"*{type_}" for type_ in TYPES)], n=1, cutoff=0.0)
            raise SignatureError(
                f"{name}={value}: there is no type {value!r}; did you mean {near[0]}? A pointer is * and its element"
            ) from error
    return Signature(types, constants)


def _items(text: str) -> list[str]:
    """The parts between commas that are in no brackets and no quotes."""
    parts, depth, quote, begin = [], 0, "", 0
    for position, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[begin:position])
            begin = position + 1
    return [part.strip() for part in [*parts, text[begin:]] if part.strip()]


def complete(kernel: Any, *signatures: Signature) -> Signature:
    """All `signatures` together, the later ones winning.

    Raises:
        SignatureError: a parameter has neither type nor value.
    """
    types: dict[str, str] = {}
    constants: dict[str, Any] = {}
    for signature in signatures:
        for name in signature.constants:
            types.pop(name, None)
        for name in signature.types:
            constants.pop(name, None)
        types.update(signature.types)
        constants.update(signature.constants)
    missing = [p.name for p in kernel.params if p.name not in types and p.name not in constants]
    if missing:
        example = ", ".join(
            f"{p.name}={1024 if p.is_constexpr else '*fp16'}" for p in kernel.params if p.name in missing
        )
        raise SignatureError(
            f"kernel {kernel.__name__}: nothing says of what type {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'}: annotate the kernel, or give --call or --signature '{example}'"
        )
    order = [parameter.name for parameter in kernel.params]
    return Signature({n: types[n] for n in order if n in types}, {n: constants[n] for n in order if n in constants})
