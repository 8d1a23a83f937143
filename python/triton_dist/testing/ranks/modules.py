"""The test's modules, found in a rank where pytest found them.

pytest may import a test module by its path alone (import modes `importlib`, `prepend` with equal names), so the
module search path is not enough: ranks are told the file of each such module, and import it under the same name.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


@dataclass(frozen=True)
class ModuleSource:
    """Where a module comes from.

    Attributes:
        file: its source file; None for a package without one.
        search: where a package's submodules are looked for; None if it is no package.
        rewritten: whether its assert statements are to explain themselves.
    """

    file: str | None
    search: tuple[str, ...] | None
    rewritten: bool


def sources(names: Iterable[str]) -> dict[str, ModuleSource]:
    """Where the loaded modules `names`, and the packages that they are in, come from."""
    found: dict[str, ModuleSource] = {}
    for name in names:
        parts = name.split(".")
        for length in range(1, len(parts) + 1):
            module = sys.modules.get(".".join(parts[:length]))
            if module is not None:
                found[".".join(parts[:length])] = _source(module)
    return found


def _source(module: ModuleType) -> ModuleSource:
    file = getattr(module, "__file__", None)
    search = getattr(module, "__path__", None)
    # By name: pytest's hook is not to be imported where it is not in use.
    rewritten = type(getattr(module, "__loader__", None)).__name__ == "AssertionRewritingHook"
    return ModuleSource(
        os.path.abspath(file) if file else None,
        tuple(search) if search is not None else None if file else (),
        rewritten,
    )


class SourceFinder(importlib.abc.MetaPathFinder):
    """Finds exactly the modules that it was told of.

    `rewriter` loads those whose assert statements explain themselves; None if none do.
    """

    def __init__(self, modules: dict[str, ModuleSource], rewriter: importlib.abc.Loader | None) -> None:
        self._modules = modules
        self._rewriter = rewriter

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        source = self._modules.get(fullname)
        if source is None:
            return None
        search = None if source.search is None else list(source.search)
        if source.file is None:
            spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = search
            return spec
        loader = self._rewriter if source.rewritten else None
        return importlib.util.spec_from_file_location(
            fullname, source.file, loader=loader, submodule_search_locations=search
        )


def conftests(config: pytest.Config, test_file: Path) -> set[str]:
    """The names of the conftest modules that apply to `test_file`, which may import from them.

    Where several have one name, pytest has loaded them one after the other under it, and the last is in place.
    """
    names = set()
    for plugin in config.pluginmanager.get_plugins():
        file = getattr(plugin, "__file__", None)
        if file and Path(file).name == "conftest.py" and Path(file).parent in test_file.parents:
            names.add(plugin.__name__)
    return names
