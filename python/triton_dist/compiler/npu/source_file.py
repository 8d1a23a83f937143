"""A file with kernels: imported as its own programs import it, and searched for kernels."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from triton.runtime.jit import JITFunction


def load(file: Path, note: Callable[[str], None]) -> ModuleType:
    """Import `file`, as a module of its package where it is in one.

    A program that starts to work when it is imported may fail, outside of its job: what it has defined by then is
    taken, and `note` is told. Without a kernel among that, the error is raised.
    """
    root = file.resolve().parent
    names = [file.stem]
    while (root / "__init__.py").exists():
        names.insert(0, root.name)
        root = root.parent
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    name = ".".join(names)
    known = sys.modules.get(name)
    if known is not None and Path(getattr(known, "__file__", "") or "").resolve() == file.resolve():
        return known
    for package in (".".join(names[:count]) for count in range(1, len(names))):
        importlib.import_module(package)
    spec = importlib.util.spec_from_file_location(name, file.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        if not kernels(module):
            raise
        text = " ".join(str(error).split())
        note(f"{file} ends with {type(error).__name__}: {text[:200]}; what it defines before that is compiled")
    return module


def kernels(module: ModuleType) -> dict[str, Any]:
    """The functions with `@triton.jit` that the module itself defines, by name, with what is around them (autotune)."""
    own = str(Path(str(module.__file__)).resolve())
    return {
        name: value
        for name, value in vars(module).items()
        if (function := innermost(value)) is not None and str(Path(function.fn.__code__.co_filename).resolve()) == own
    }


def innermost(value: Any) -> Any:
    """The function with `@triton.jit` in it; None where there is none."""
    while value is not None and not isinstance(value, JITFunction):
        value = getattr(value, "fn", None) if hasattr(value, "run") else None
    return value


def called(functions: dict[str, Any]) -> set[str]:
    """Names of those of `functions` that another one of them calls: parts of kernels, which are compiled with these."""
    return {
        node.func.id
        for name, value in functions.items()
        for node in ast.walk(ast.parse(innermost(value).src))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions
        if node.func.id != name
    }
