"""Settings of hardware units, and counts of their cycles. Simulated NPUs have neither: they are checked and dropped."""

from __future__ import annotations

import logging

from triton_dist.runtime import job

from ._arguments import integer
from ._types import ProfData

__all__ = [
    "aclshmemx_get_prof",
    "aclshmemx_set_mte_config",
    "aclshmemx_set_rdma_config",
    "aclshmemx_set_sdma_config",
    "aclshmemx_set_udma_config",
    "aclshmemx_show_prof",
]


def aclshmemx_set_mte_config(offset: int, ub_size: int, sync_id: int) -> int:
    """Where MTE transfers are staged in UB. Returns 0."""
    return _check("aclshmemx_set_mte_config", offset, ub_size, sync_id, 0)


def aclshmemx_set_sdma_config(offset: int, ub_size: int, sync_id: int) -> int:
    """Where SDMA transfers are staged in UB. Returns 0."""
    return _check("aclshmemx_set_sdma_config", offset, ub_size, sync_id, 0)


def aclshmemx_set_rdma_config(offset: int, ub_size: int, sync_id: int) -> int:
    """Where RDMA transfers are staged in UB, at least 128 bytes. Returns 0."""
    return _check("aclshmemx_set_rdma_config", offset, ub_size, sync_id, 128)


def aclshmemx_set_udma_config(offset: int, ub_size: int, sync_id: int) -> int:
    """Where UDMA transfers are staged in UB, at least 128 bytes. Returns 0."""
    return _check("aclshmemx_set_udma_config", offset, ub_size, sync_id, 128)


def _check(function: str, offset: int, ub_size: int, sync_id: int, least: int) -> int:
    job.require(function)
    for name, value, low, bits in (
        ("offset", offset, 0, 64),
        ("ub_size", ub_size, least, 32),
        ("sync_id", sync_id, 0, 32),
    ):
        if not low <= integer(value, name, function) < 1 << bits:
            raise ValueError(f"{function}: {name} is {value}: it must be from {low} to 2**{bits} - 1")
    return 0


def aclshmemx_get_prof(verbose: bool = False) -> ProfData | None:
    """Cycles counted so far: None, as on a rank of hardware where counting is off."""
    job.require("aclshmemx_get_prof")
    if verbose:
        aclshmemx_show_prof()
    return None


def aclshmemx_show_prof() -> None:
    """Prints the cycles counted so far, on the PE that SHMEM_CYCLE_PROF_PE names; elsewhere logs that none are."""
    if job.require("aclshmemx_show_prof").show_profile():
        return
    logging.getLogger("aclshmem").info("no cycles are counted here: set SHMEM_CYCLE_PROF_PE to the number of this PE")
