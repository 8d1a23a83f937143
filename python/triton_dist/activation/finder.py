"""Import finders: shims for packages of the Ascend stack that are missing, and work to do after an import.

Imported when an interpreter starts, whatever program that is: it does next to nothing until one of the names below is
imported, and it imports what it needs then.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class First:
    """In front of all finders: sees what is about to be imported from elsewhere."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of a package with something of ours around it, or None to leave the import to others."""
        handler = _WATCHED.get(name)
        return handler(name) if handler is not None else None


class Last:
    """Behind all finders: sees what nobody else has."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of a shim, or None where there is none for `name` or real NPUs are used."""
        shim = _SHIMS.get(name)
        if shim is None:
            return None
        from triton_dist.activation import shims

        return shims.spec_if_wanted(name, shim)


def _triton(name: str) -> ModuleSpec | None:
    from triton_dist.activation import after_import

    return after_import.watch(name, after_import.activate_triton)


def _rendezvous(name: str) -> ModuleSpec | None:
    from triton_dist.activation import after_import

    return after_import.watch(name, after_import.use_leased_port)


def _maybe_broken(name: str) -> ModuleSpec | None:
    from triton_dist.activation import shims

    return shims.spec_before_real_one(name, _SHIMS[name])


def _shmem(name: str) -> ModuleSpec | None:
    spec = _maybe_broken(name)
    if spec is not None:
        return spec
    from triton_dist.activation import after_import, leased_endpoint
    from triton_dist.runtime import backend

    # On simulated NPUs the shim comes last, where nobody else has the name.
    return after_import.watch(name, leased_endpoint.use_leased_endpoint) if backend.active() != "sim" else None


_WATCHED: dict[str, Callable[[str], ModuleSpec | None]] = {
    "triton": _triton,
    "torch.distributed.rendezvous": _rendezvous,
    "torch_npu": _maybe_broken,
    "shmem": _shmem,
}
# Name to import -> package of triton_dist.shims that stands in for it.
_SHIMS = {
    "torch_npu": "torch_npu",
    "shmem": "shmem",
    "triton.language.extra.cann": "cann",
}

OURS = (First, Last)


def install() -> None:
    """Puts the finders into sys.meta_path. Calling it again changes nothing."""
    if First not in sys.meta_path:
        sys.meta_path.insert(0, First)
        sys.meta_path.append(Last)


def _silence_pytest() -> None:
    """Keeps pytest from warning, in every run, that it cannot rewrite the assert statements of an editable install.

    Its loader, of which the users of pytest have never heard, is imported by a .pth file just before this module.
    """
    loader = sys.modules.get("_editable_skbc_triton_dist")
    if loader is not None:
        loader.__doc__ = "PYTEST_DONT_REWRITE"


install()
_silence_pytest()
