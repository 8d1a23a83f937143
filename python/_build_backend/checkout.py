"""Where things stand in the checkout, and its own registry of environment variables and versions.

The registry is loaded from its directory: `import triton_dist` might find an earlier installation from
another checkout.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

PYTHON_DIRECTORY = Path(__file__).resolve().parents[1]
ROOT = PYTHON_DIRECTORY.parent

if TYPE_CHECKING:
    from triton_dist import env as env
else:
    _directory = PYTHON_DIRECTORY / "triton_dist" / "env"
    _spec = importlib.util.spec_from_file_location(
        "_build_backend._env", _directory / "__init__.py", submodule_search_locations=[str(_directory)]
    )
    env = importlib.util.module_from_spec(_spec)
    # The modules of the package find each other through it.
    sys.modules[_spec.name] = env
    _spec.loader.exec_module(env)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    with path.open("rb") as file:
        tables: dict[str, Any] = tomllib.load(file)
    return tables


def versions() -> dict[str, Any]:
    """The pins of docker/versions.toml, as its tables."""
    return read_toml(ROOT / "docker" / "versions.toml")
