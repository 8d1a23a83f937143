"""PEP 517 backend: scikit-build-core, told what the build-time environment variables ask for.

Every hook checks these variables and the LLVM they lead to first, so that a build that cannot
succeed ends before anything is compiled, with one line that says why.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from _build_backend import settings as _settings
from _build_backend.errors import BuildSettingsError

ConfigSettings = dict[str, str | list[str]]

__all__ = [
    "build_editable",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def get_requires_for_build_wheel(config_settings: ConfigSettings | None = None) -> list[str]:
    """What else the build needs from a package index: cmake or ninja where the system has none."""
    with _one_line_errors():
        from scikit_build_core import build

        resolved = _settings.resolve()
        requires = build.get_requires_for_build_wheel(resolved.config(config_settings))
        resolved.forbid_downloads(requires)
        return requires


# An editable build needs the same.
get_requires_for_build_editable = get_requires_for_build_wheel


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: ConfigSettings | None = None) -> str:
    """The wheel's metadata, without a build."""
    from scikit_build_core import build

    return build.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def prepare_metadata_for_build_editable(metadata_directory: str, config_settings: ConfigSettings | None = None) -> str:
    """The editable wheel's metadata, without a build."""
    from scikit_build_core import build

    return build.prepare_metadata_for_build_editable(metadata_directory, config_settings)


def build_wheel(
    wheel_directory: str, config_settings: ConfigSettings | None = None, metadata_directory: str | None = None
) -> str:
    """Builds csrc and a wheel that holds it."""
    return _build("build_wheel", wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: ConfigSettings | None = None, metadata_directory: str | None = None
) -> str:
    """Builds csrc in the checkout and a wheel that leads imports there."""
    return _build("build_editable", wheel_directory, config_settings, metadata_directory)


def _build(
    hook: Literal["build_wheel", "build_editable"],
    wheel_directory: str,
    config_settings: ConfigSettings | None,
    metadata_directory: str | None,
) -> str:
    with _one_line_errors():
        from scikit_build_core import build

        for note in _settings.check_variables():
            print(f"note: {note}", file=sys.stderr, flush=True)
        resolved = _settings.resolve()
        name: str = getattr(build, hook)(wheel_directory, resolved.config(config_settings), metadata_directory)
        resolved.remember()
        return name


@contextmanager
def _one_line_errors() -> Iterator[None]:
    try:
        yield
    except BuildSettingsError as error:
        raise SystemExit(f"error: {error}") from None
