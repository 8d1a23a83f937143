"""pytest-cov's measurement goes on in the ranks: each writes a data file beside those that pytest-cov combines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True)
class CoverageSettings:
    """What a rank has to know of the measurement.

    Attributes:
        data_file: the one into which pytest-cov combines all; a rank's has a suffix.
        config_file: where coverage reads its settings; None if nowhere.
        source: what is measured; None: what the settings say.
        branch: whether branches are.
    """

    data_file: str
    config_file: str | None
    source: tuple[str, ...] | None
    branch: bool


def settings_of(config: pytest.Config) -> CoverageSettings | None:
    """Of a run that pytest-cov measures; None if it does not."""
    plugin: Any = config.pluginmanager.getplugin("_cov")
    measuring: Any = getattr(getattr(plugin, "cov_controller", None), "cov", None)
    if measuring is None or getattr(plugin, "_disabled", False):
        return None
    settings = measuring.config
    return CoverageSettings(
        os.path.abspath(settings.data_file),
        os.path.abspath(settings.config_file) if settings.config_file else None,
        tuple(settings.source) if settings.source else None,
        bool(settings.branch),
    )


@contextmanager
def measured(settings: CoverageSettings | None) -> Iterator[None]:
    """Measures what this process runs while entered, if there are settings."""
    if settings is None:
        yield
        return
    import coverage

    measurement = coverage.Coverage(
        data_file=settings.data_file,
        data_suffix=True,
        config_file=settings.config_file or False,
        source=list(settings.source) if settings.source else None,
        branch=settings.branch,
    )
    measurement.start()
    try:
        yield
    finally:
        measurement.stop()
        measurement.save()
