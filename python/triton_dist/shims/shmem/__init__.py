"""aclshmem's Python package on simulated NPUs: offered as `shmem` where the real one is missing.

Names, arguments and results are those of aclshmem; its documentation holds. Failures are told by exceptions that name
function, value and reason. What simulated NPUs cannot give raises NotImplementedError.
"""

# ruff: noqa: F403 - a name space made of others

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _pyshmem
from . import core as core
from ._pyshmem import *
from ._tensors import *

aclshmem_finialize = _pyshmem.aclshmem_finalize
"""Older spelling."""


def __getattr__(name: str) -> Callable[..., Any]:
    """Functions that exist once for each type or size: `aclshmem_int32_p`, `aclshmem_put64`, ..."""
    return _pyshmem.__getattr__(name)


def __dir__() -> list[str]:
    return [*globals(), *dir(_pyshmem)]
