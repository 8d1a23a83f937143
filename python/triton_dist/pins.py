"""The pins of docker/versions.toml: read where the package runs from a checkout, or from the copy in its wheel."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parent


def checkout() -> Path | None:
    """The checkout that the package runs from; None if it runs from a wheel."""
    root = _PACKAGE.parents[1]
    return root if (root / "docker" / "versions.toml").is_file() and (root / "csrc").is_dir() else None


def read() -> dict[str, Any]:
    """The tables of the file."""
    root = checkout()
    path = _PACKAGE / "versions.toml" if root is None else root / "docker" / "versions.toml"
    return _toml().loads(path.read_text())  # type: ignore[no-any-return]


def _toml() -> Any:
    if sys.version_info >= (3, 11):
        import tomllib

        return tomllib
    try:
        import tomli
    except ImportError:  # before anything is installed
        from pip._vendor import tomli
    return tomli
