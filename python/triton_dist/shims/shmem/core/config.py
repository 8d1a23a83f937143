"""Where transfers are staged in UB: checked, and of no effect on simulated NPUs."""

from __future__ import annotations

from .. import _settings
from .utils import in_this_layers_errors


def set_mte_config(offset: int, ub_size: int, sync_id: int) -> None:
    """For MTE. Raises AclshmemInvalid for a value that is not possible."""
    with in_this_layers_errors():
        _settings.aclshmemx_set_mte_config(offset, ub_size, sync_id)


def set_sdma_config(offset: int, ub_size: int, sync_id: int) -> None:
    """For SDMA. Raises AclshmemInvalid for a value that is not possible."""
    with in_this_layers_errors():
        _settings.aclshmemx_set_sdma_config(offset, ub_size, sync_id)


def set_rdma_config(offset: int, ub_size: int, sync_id: int) -> None:
    """For RDMA, at least 128 bytes. Raises AclshmemInvalid for a value that is not possible."""
    with in_this_layers_errors():
        _settings.aclshmemx_set_rdma_config(offset, ub_size, sync_id)


def set_udma_config(offset: int, ub_size: int, sync_id: int) -> None:
    """For UDMA, at least 128 bytes. Raises AclshmemInvalid for a value that is not possible."""
    with in_this_layers_errors():
        _settings.aclshmemx_set_udma_config(offset, ub_size, sync_id)
