"""The test's own modules in a rank that has had a test before: kept while they are as they were imported.

Importing them anew for each test would be the plain way, and cost more than all the rest: kernels are compiled
functions of their module. So a module stays if nothing in it has changed since its import, and if it would come out
of an import for the next test as it did for the last one. Otherwise all modules of the tests go, and are imported
anew by whoever wants them.
"""

from __future__ import annotations

import ast
import importlib
import os
import site
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import CellType, FunctionType, ModuleType
from typing import Any

from triton_dist.testing.ranks.modules import ModuleSource
from triton_dist.testing.ranks.task import Task

# A module whose import may have read what differs from test to test.
_ENVIRONMENT = frozenset({"environ", "getenv"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# How deep, and how many objects altogether, a module's values are looked at for changes.
_DEEPEST = 6
_MOST_OBJECTS = 5000
# Of a numpy array, in bytes.
_LARGEST_ARRAY = 65536

_Setting = tuple[int, int, str, tuple[str, ...]]


class UserModules:
    """Modules that were imported since the rank's birth and belong to no installed package."""

    def __init__(self) -> None:
        self._libraries = set(sys.modules)
        self._roots = _installed_roots()
        self._setting: _Setting | None = None
        self._sources: dict[str, ModuleSource] = {}
        # By name: the module, and what was in it.
        self._kept: dict[str, tuple[ModuleType, object]] = {}

    def begin(self, rank: int, task: Task) -> None:
        """Drops what may not be the same for `task`."""
        setting = (rank, task.world_size, task.directory, tuple(task.sys_path))
        same = setting == self._setting and all(
            task.modules[name] == self._sources[name] for name in task.modules.keys() & self._sources.keys()
        )
        if not same:
            self._drop()
        self._setting = setting
        self._sources.update(task.modules)

    def imported(self) -> None:
        """Notes what is in modules that are new, before the test can change it."""
        now = dict(self._loaded())
        content = _Content(frozenset(now))
        for name, module in now.items():
            if name not in self._kept:
                self._kept[name] = (module, content.of(module) if _may_stay(module) else object())

    def end(self) -> None:
        """Drops all if the test has changed something in one of them, or has imported more."""
        now = dict(self._loaded())
        content = _Content(frozenset(now))
        if now.keys() != self._kept.keys() or any(
            self._kept[name][0] is not module or self._kept[name][1] != content.of(module)
            for name, module in now.items()
        ):
            self._drop()

    def owns(self, name: str | None) -> bool:
        """Whether the module of this name belongs to the tests."""
        module = sys.modules.get(name or "")
        return name == "__main__" or (module is not None and self._is_theirs(name or "", module))

    def _drop(self) -> None:
        for name, _ in list(self._loaded()):
            del sys.modules[name]
            parent, _, child = name.rpartition(".")
            if parent in sys.modules:
                vars(sys.modules[parent]).pop(child, None)
        self._kept.clear()
        self._sources.clear()
        importlib.invalidate_caches()

    def _loaded(self) -> Iterator[tuple[str, ModuleType]]:
        for name, module in list(sys.modules.items()):
            if name not in self._libraries and self._is_theirs(name, module):
                yield name, module

    def _is_theirs(self, name: str, module: Any) -> bool:
        if name in self._libraries or name.partition(".")[0] == "triton_dist":
            return False
        file = getattr(module, "__file__", None)
        if not isinstance(file, str):
            # A namespace package, or one that a test has made up; modules of Python itself are in C.
            return not hasattr(module, "__loader__") or getattr(module, "__path__", None) is not None
        return not any(os.path.abspath(file).startswith(root) for root in self._roots)


def _installed_roots() -> tuple[str, ...]:
    """The directories, with a separator at their end, of all that is installed."""
    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    paths |= {*site.getsitepackages(), site.getusersitepackages()}
    return tuple(os.path.join(os.path.abspath(path), "") for path in paths if path)


def _may_stay(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if file is None:
        return getattr(module, "__path__", None) is not None
    try:
        source = Path(file).read_text(errors="replace")
    except OSError:
        return False
    return not any(word in source for word in _ENVIRONMENT) or not _reads_environment_at_import(source)


def _reads_environment_at_import(source: str) -> bool:
    """Whether code that runs at import names the environment, or calls a function of the module, which may read it."""
    try:
        nodes: list[ast.AST] = [ast.parse(source)]
    except SyntaxError:
        return True
    own = {node.name for node in ast.walk(nodes[0]) if isinstance(node, _FUNCTIONS)}
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in own:
            return True
        if (node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)) in _ENVIRONMENT:
            return True
        body = node.body if isinstance(node, (*_FUNCTIONS, ast.Lambda)) else []
        inside = body if isinstance(body, list) else [body]
        nodes += [child for child in ast.iter_child_nodes(node) if child not in inside]
    return False


# ------------------------------------------------------------------------------------------ content


class _Content:
    """What is in a module, in a form that is equal to an earlier one if nothing has been changed.

    Containers, and functions, classes and instances of classes of the tests' modules, are looked into. Any other
    object counts as changed when another stands in its place, a tensor also when it has been written to.
    """

    def __init__(self, theirs: frozenset[str]) -> None:
        """`theirs`: names of the tests' modules."""
        self._theirs = theirs
        self._left = _MOST_OBJECTS
        self._seen: set[int] = set()

    def of(self, module: ModuleType) -> object:
        return {name: self._value(value, _DEEPEST) for name, value in vars(module).items() if not _is_special(name)}

    def _value(self, value: Any, depth: int) -> object:
        kind = type(value)
        if value is None or kind in (bool, int, float, complex, str, bytes):
            return (kind, value)
        if isinstance(value, ModuleType) or id(value) in self._seen or depth == 0:
            return id(value)
        self._seen.add(id(value))
        self._left -= 1
        if self._left < 0 or hasattr(kind, "__next__"):
            # Too much to look at; or an iterator, which does not show where it stands. Equal to nothing.
            return object()
        return (id(value), self._inside(value, depth - 1))

    def _inside(self, value: Any, depth: int) -> object:
        if isinstance(value, dict):
            return [(_key(key), self._value(item, depth)) for key, item in list(value.items())]
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self._value(item, depth) for item in list(value)]
        if hasattr(value, "_version") and hasattr(value, "data_ptr"):
            return value._version
        if type(value).__name__ == "ndarray":
            return value.tobytes() if value.nbytes <= _LARGEST_ARRAY else object()
        if isinstance(value, FunctionType):
            if value.__module__ not in self._theirs:
                return None
            cells = (_content_of_cell(cell) for cell in value.__closure__ or ())
            parts = (vars(value), value.__defaults__, value.__kwdefaults__, *cells)
            return [self._value(part, depth) for part in parts]
        if isinstance(value, type):
            if value.__module__ not in self._theirs:
                return None
            return [(name, self._value(item, depth)) for name, item in vars(value).items() if not _is_special(name)]
        if type(value).__module__ in self._theirs:
            return self._value(getattr(value, "__dict__", None), depth)
        return None


def _is_special(name: str) -> bool:
    # Python's own names, and those of pytest's rewritten assert statements.
    return name.startswith(("__", "@"))


def _key(key: object) -> object:
    return key if isinstance(key, (str, int, bytes)) else id(key)


def _content_of_cell(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return None  # not filled yet
