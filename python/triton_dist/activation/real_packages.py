"""Whether a package of the Ascend stack that is really installed takes the place of ours."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec

from triton_dist import env
from triton_dist.activation import finder


def find(name: str) -> ModuleSpec | None:
    """Spec of the module `name` that is installed, as if our finders were not there; its package must be imported."""
    package = name.rpartition(".")[0]
    path = sys.modules[package].__path__ if package else None
    for other in sys.meta_path:
        if other in finder.OURS or not hasattr(other, "find_spec"):
            continue
        spec = other.find_spec(name, path, None)
        if spec is not None:
            return spec
    return None


def torch_npu_wins() -> bool:
    """Whether the real torch_npu is to give torch its device, which it does when it can be loaded.

    Under TRITON_DIST_BACKEND=sim it is not even tried: torch has room for one device only.
    """
    if env.TRITON_DIST_BACKEND.get() == "sim" or find("torch_npu") is None:
        return False
    import torch_npu

    if getattr(torch_npu, "simulated", False):
        return False
    print(
        "triton-dist: torch_npu is installed and no NPU is there: set TRITON_DIST_BACKEND=sim to use simulated NPUs",
        file=sys.stderr,
        flush=True,
    )
    return True
