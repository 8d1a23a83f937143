"""All functions on addresses and all types in one name space, as in the extension module of the real package."""

# ruff: noqa: F403 - a name space made of others

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _rma, _teams, _waits
from ._lifecycle import *
from ._memory import *
from ._rma import *
from ._settings import *
from ._teams import *
from ._types import *
from ._waits import *

_is_valid_team = _teams.is_live_team
_families = {**_rma.FAMILIES, **_waits.FAMILIES}


def __getattr__(name: str) -> Callable[..., Any]:
    """Functions that exist once for each type or size: `aclshmem_int32_p`, `aclshmem_put64`, ..."""
    try:
        return _families[name]
    except KeyError:
        raise AttributeError(f"aclshmem's Python package on simulated NPUs has no {name}") from None


def __dir__() -> list[str]:
    return [*globals(), *_families]
