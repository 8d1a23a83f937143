"""PEP 517 backend: scikit-build-core, told what the build-time environment variables ask for.

Every hook checks these variables and the LLVM they lead to first, so that a build that cannot
succeed ends before anything is compiled, with one line that says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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


@contextmanager
def _one_line_errors() -> Iterator[None]:
    try:
        yield
    except BuildSettingsError as error:
        raise SystemExit(f"error: {error}") from None


def get_requires_for_build_wheel(config_settings: ConfigSettings | None = None) -> list[str]:
    """What else the build needs from a package index: cmake or ninja where the system has none."""
    with _one_line_errors():
        from scikit_build_core import build

        resolved = _settings.resolve()
        requires = build.get_requires_for_build_wheel(resolved.config(config_settings))
        resolved.forbid_downloads(requires)
        return requires


def get_requires_for_build_editable(config_settings: ConfigSettings | None = None) -> list[str]:
    """See get_requires_for_build_wheel."""
    return get_requires_for_build_wheel(config_settings)


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: ConfigSettings | None = None) -> str:
    """The wheel's metadata, without a build."""
    from scikit_build_core import build

    return build.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def prepare_metadata_for_build_editable(metadata_directory: str, config_settings: ConfigSettings | None = None) -> str:
    """The editable wheel's metadata, without a build."""
    from scikit_build_core import build

    return build.prepare_metadata_for_build_editable(metadata_directory, config_settings)


def build_wheel(
    wheel_directory: str,
    config_settings: ConfigSettings | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Builds csrc and a wheel that holds it."""
    with _one_line_errors():
        from scikit_build_core import build

        resolved = _settings.resolve()
        name = build.build_wheel(wheel_directory, resolved.config(config_settings), metadata_directory)
        resolved.remember()
        return name


def build_editable(
    wheel_directory: str,
    config_settings: ConfigSettings | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Builds csrc in the checkout and a wheel that leads imports there."""
    with _one_line_errors():
        from scikit_build_core import build

        resolved = _settings.resolve()
        name = build.build_editable(wheel_directory, resolved.config(config_settings), metadata_directory)
        resolved.remember()
        return name
