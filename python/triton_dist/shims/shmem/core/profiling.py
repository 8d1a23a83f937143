"""Cycle counts, which simulated NPUs do not have."""

from __future__ import annotations

from .._settings import aclshmemx_get_prof, aclshmemx_show_prof
from .._types import ProfData as ProfData
from .utils import in_this_layers_errors


def get_prof(verbose: bool = False) -> ProfData | None:
    """None: nothing is counted."""
    with in_this_layers_errors():
        return aclshmemx_get_prof(verbose)


def show_prof() -> None:
    """Logs that there is nothing to show."""
    with in_this_layers_errors():
        aclshmemx_show_prof()
