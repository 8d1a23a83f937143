"""Who am I: ranks, teams and whether shmem is initialised."""

from __future__ import annotations

from .._lifecycle import aclshmemx_init_status
from .._teams import my_pe as _my_pe
from .._teams import pe_count as _pe_count
from .._teams import team_my_pe as team_my_pe
from .._teams import team_n_pes as team_n_pes
from .._types import CmpOp
from .._types import InitStatus as InitStatus
from .._types import SignalOp as SignalOp

ComparisonType = CmpOp


def my_pe() -> int:
    """Number of this rank."""
    return _my_pe()


def n_pes() -> int:
    """Number of ranks of the job."""
    return _pe_count()


def init_status() -> InitStatus:
    """Whether this process is in a job."""
    return aclshmemx_init_status()
