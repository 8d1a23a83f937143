"""Whether NPUs are fit for the next program after one that hung or was killed on them."""

from __future__ import annotations

from collections.abc import Sequence

from triton_dist.devices import npu_smi
from triton_dist.devices.survey import UNKNOWN, Npu, survey


def troubles(npus: Sequence[int], *, busy: bool) -> dict[int, str | None]:
    """Why each of `npus`, physical numbers, is not fit; None where its health, memory and processes are in order.

    Where there is no npu-smi nobody can tell, and they count as fit.

    Args:
        npus: which nobody should be using.
        busy: programs of others on them are no trouble.
    """
    found = survey()
    silent = found.notes[0] if found.notes else "it does not say how they are"
    return {number: _trouble(found.npu(number), silent, busy=busy) for number in npus}


def _trouble(npu: Npu | None, silent: str, *, busy: bool) -> str | None:
    if npu is None:
        return "its device node is gone"
    if npu.defect is not None:
        return npu.defect
    if npu.health == UNKNOWN:
        return f"npu-smi gives no answer ({silent})" if npu_smi.is_installed() else None
    return None if busy or npu.busy is None else f"it is still busy: {npu.busy}"
