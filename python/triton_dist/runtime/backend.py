"""Where kernels run in this process: on simulated NPUs or on Ascend NPUs."""

from __future__ import annotations

from typing import Literal

from triton_dist import env
from triton_dist.devices import nodes


def active() -> Literal["sim", "ascend"]:
    """The backend that TRITON_DIST_BACKEND names; with `auto`, `ascend` if the host has NPUs, else `sim`.

    Raises:
        EnvironmentVariableError: the variable holds another word.
    """
    chosen = env.TRITON_DIST_BACKEND.get()
    if chosen == "auto":
        return "ascend" if has_npus() else "sim"
    return "sim" if chosen == "sim" else "ascend"


def has_npus() -> bool:
    """Whether the driver of real NPUs shows one: a device node /dev/davinci<number>."""
    return bool(nodes.physical_ids())
