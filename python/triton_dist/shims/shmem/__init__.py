"""aclshmem's Python package on simulated NPUs: offered as `shmem` where the real one is missing.

Names, arguments and results are those of aclshmem; its documentation holds. Failures are told by exceptions that name
function, value and reason. What simulated NPUs cannot give raises NotImplementedError.
"""

# ruff: noqa: F403 - a name space made of others

from __future__ import annotations

from . import _pyshmem
from . import core as core
from ._lifecycle import aclshmem_finalize as aclshmem_finialize  # noqa: F401 - older spelling
from ._pyshmem import *
from ._tensors import *

# Functions that exist once for each type or size are made rather than written.
globals().update({name: value for name, value in vars(_pyshmem).items() if name.startswith("aclshmem")})
