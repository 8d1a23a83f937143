"""Which kernels are compiled, for what: from a file, names, a signature, a call and options as a user gives them."""

from __future__ import annotations

import ast
import difflib
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from triton.runtime.autotuner import Autotuner

from triton_dist.compiler.npu import example_calls, signatures, source_file, tools
from triton_dist.compiler.npu.compilation import Request
from triton_dist.compiler.npu.signatures import Signature
from triton_dist.compiler.npu.staging import Staging
from triton_dist.compiler.options import OPTIONS


@dataclass(frozen=True)
class Choice:
    """A kernel with all that is known before the SoC is."""

    kernel: Any
    name: str
    signature: Signature
    options: dict[str, Any] = field(default_factory=dict)


def request(choice: Choice, soc: str, staging: Staging) -> Request:
    """The choice for one SoC."""
    signature = choice.signature
    return Request(choice.kernel, choice.name, signature.types, signature.constants, choice.options, soc, staging)


def targets(names: Sequence[str]) -> list[str]:
    """The SoCs called `names`.

    Raises:
        ValueError: the compiler knows no such SoC; the text has the nearest name that it knows.
    """
    known = tools.targets()
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
            raise ValueError(f"bishengir-compile makes no code for {name!r}: did you mean {near[0]}?")
    return list(dict.fromkeys(names))


def of_file(
    file: Path,
    names: Sequence[str],
    signature: str | None,
    call: str | None,
    options: Sequence[str],
    note: Callable[[str], None],
) -> list[Choice]:
    """What is to be compiled of one file.

    Args:
        file: has the kernels.
        names: those that are wanted; none means all that are no mere part of another kernel.
        signature: types and constants, over what the annotations say.
        call: an expression that launches the kernels; it takes the place of annotations.
        options: compiler options as `name=value`.
        note: is told what the user should know, and what does not keep the kernels from being compiled.

    Raises:
        ValueError: there is no such kernel, or no type of a parameter; the file or the call raises.
    """
    try:
        module = source_file.load(file, note)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{file} cannot be imported: {_last_line(error)}") from error
    functions = source_file.kernels(module)
    for name in names:
        if name not in functions:
            near = difflib.get_close_matches(name, functions, n=1)
            known = f"did you mean {near[0]}?" if near else f"it has {', '.join(functions) or 'none'}"
            raise ValueError(f"{file} has no kernel {name}: {known}")
    given = _options(options)
    if call is not None:
        return _launched(file, call, vars(module), set(names), given, note)
    wanted = list(names)
    if not wanted:
        parts = source_file.called(functions)
        wanted = [name for name in functions if name not in parts]
    if not wanted:
        raise ValueError(f"{file} has no kernel: a function with @triton.jit at its top level")
    choices: list[Choice] = []
    for name in wanted:
        choices += _variants(functions[name], name, signature, vars(module), given)
    return choices


def _variants(
    value: Any, name: str, text: str | None, namespace: dict[str, Any], options: dict[str, Any]
) -> list[Choice]:
    """The kernel; one for each configuration where it is autotuned."""
    kernel = source_file.innermost(value)
    known = signatures.of_annotations(kernel)
    given = signatures.of_text(kernel, text, namespace) if text is not None else Signature()
    configurations = value.configs if isinstance(value, Autotuner) else []
    if not configurations:
        return [Choice(kernel, name, signatures.complete(kernel, known, given), options)]
    choices = []
    for configuration in configurations:
        chosen = {key: v for key, v in configuration.all_kwargs().items() if v is not None}
        constants = {key: v for key, v in chosen.items() if key in kernel.arg_names}
        tuned = {key: v for key, v in chosen.items() if key in OPTIONS and key not in kernel.arg_names}
        shown = ", ".join(f"{key}={v}" for key, v in configuration.kwargs.items())
        whole = signatures.complete(kernel, known, given, Signature({}, constants))
        choices.append(Choice(kernel, f"{name}[{shown}]", whole, {**tuned, **options}))
    return choices


def _launched(
    file: Path,
    call: str,
    namespace: dict[str, Any],
    names: set[str],
    options: dict[str, Any],
    note: Callable[[str], None],
) -> list[Choice]:
    with example_calls.recorded() as launches:
        try:
            eval(call, namespace)
        except Exception as error:
            if not launches:
                raise ValueError(f"the call {call!r} in {file} fails: {_last_line(error)}") from error
            # What follows a launch may well fail: its results are not there.
            note(f"the call ends with {_last_line(error)}; what it launches before that is compiled")
    wanted = [launch for launch in launches if not names or launch.kernel.__name__ in names]
    if not wanted:
        raise ValueError(f"the call {call!r} in {file} launches no kernel{' of that name' if names else ''}")
    choices: dict[str, Choice] = {}
    for launch in wanted:
        choice = Choice(launch.kernel, launch.kernel.__name__, launch.signature, {**launch.options, **options})
        choices.setdefault(repr((id(launch.kernel), launch.signature, launch.options)), choice)
    return list(choices.values())


def _options(texts: Sequence[str]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--option {text}: give NAME=VALUE, such as multibuffer=False")
        try:
            options[name.strip()] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError):
            options[name.strip()] = value.strip()
    return options


def _last_line(error: BaseException) -> str:
    return traceback.format_exception_only(error)[-1].strip()
