"""For which SoC the kernel at hand is compiled, and what that SoC can do."""

from __future__ import annotations

from triton.language import core
from triton.runtime.driver import driver

from triton_dist import env

from ._frontend import Emitter

WIDE_ATOMICS = ("Ascend950", "Ascend910_95")
"""SoCs (prefixes of their names) whose remote atomic add knows uint32, int64 and uint64."""


def _of_active_driver() -> str | None:
    active = driver.active
    # The default driver is made on first use, which fails where there is no NPU. Compiling alone
    # needs no driver, so it must not be woken up here.
    if active is driver.default and active._obj is None:
        return None
    return str(active.get_current_target().arch)


def soc(emit: Emitter) -> str:
    """The SoC: what the backend says, else the active driver, else the environment."""
    return emit.target or _of_active_driver() or env.TRITON_ASCEND_ARCH.get() or env.TRITON_DIST_SIM_SOC.get()


def can_add_remotely(soc_name: str, word: core.dtype) -> bool:
    """Whether the SoC adds to a 32- or 64-bit integer ``word`` of another PE atomically.

    Source: the table of remote atomics in aclshmem's device headers.
    """
    return word == core.int32 or soc_name.startswith(WIDE_ATOMICS)
