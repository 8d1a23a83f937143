"""All variables by name."""

from __future__ import annotations

from . import aclshmem, build, cann, hccl, ours, torch, triton_ascend
from .variable import Variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

REGISTRY: dict[str, Variable[object]] = {
    variable.name: variable
    for module in (ours, aclshmem, triton_ascend, cann, hccl, torch, build)
    for variable in vars(module).values()
    if isinstance(variable, Variable)
}


def variables(category: str | None = None) -> Iterable[Variable[object]]:
    """All variables, or those of one category, owner by owner."""
    return [v for v in REGISTRY.values() if category is None or v.category == category]
