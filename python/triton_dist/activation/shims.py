"""Specs of the packages that stand in for those of the Ascend stack."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

from triton_dist import env
from triton_dist.activation import real_packages
from triton_dist.runtime import backend

_DIRECTORY = Path(__file__).parents[1] / "shims"

# They add to the language, and are missing from triton-ascend whatever runs the kernels.
_NEEDED_ON_HARDWARE_TOO = ("triton.language.extra.cann",)


def spec_if_wanted(name: str, shim: str) -> ModuleSpec | None:
    """Spec of the shim for `name`, which nobody has; None when real NPUs are used, where its absence must show."""
    if name in _NEEDED_ON_HARDWARE_TOO or backend.active() == "sim":
        return _spec(name, shim)
    return None


def spec_before_real_one(name: str, shim: str) -> ModuleSpec | None:
    """Spec for `name` that does not depend on whether an installed package of that name can be loaded.

    None when real NPUs are used. Under TRITON_DIST_BACKEND=sim it is the shim's. With `auto` the installed package is
    loaded, and the shim takes its place if that fails, as it does without a driver.
    """
    if backend.active() != "sim":
        return None
    if env.TRITON_DIST_BACKEND.get() == "sim":
        return _spec(name, shim)
    real = real_packages.find(name)
    if real is None or real.loader is None:
        return None
    load_real = real.loader.exec_module

    def load(module: ModuleType) -> None:
        try:
            load_real(module)
        except Exception as error:
            print(
                f"triton-dist: the installed {name} cannot be loaded ({' '.join(str(error).split())}): "
                "simulated NPUs are used",
                file=sys.stderr,
                flush=True,
            )
            _replace(module, name, shim)

    real.loader.exec_module = load  # type: ignore[method-assign]
    return real


def _spec(name: str, shim: str) -> ModuleSpec:
    package = _DIRECTORY / shim
    spec = spec_from_file_location(name, package / "__init__.py", submodule_search_locations=[str(package)])
    assert spec is not None
    return spec


def _replace(module: ModuleType, name: str, shim: str) -> None:
    """Loads the shim into the module that has failed to load: importers already hold that one."""
    for loaded in [other for other in sys.modules if other.startswith(f"{name}.")]:
        del sys.modules[loaded]
    spec = _spec(name, shim)
    for attribute in [key for key in vars(module) if key not in ("__name__", "__builtins__")]:
        delattr(module, attribute)
    loader = spec.loader
    assert isinstance(loader, SourceFileLoader)
    assert spec.submodule_search_locations is not None
    module.__spec__ = spec
    module.__loader__ = loader
    module.__package__ = name
    module.__file__ = spec.origin
    module.__path__ = spec.submodule_search_locations
    loader.exec_module(module)
