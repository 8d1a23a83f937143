"""Checks of compiler options where users give them: at a launch and in triton.Config.

Triton 3.2 meets an unknown name at a launch with a bare KeyError, does not look at types, and lets triton.Config drop
what it does not know, and also some options that it should know.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from triton.runtime import autotuner, jit

from triton_dist.compiler import options


def install() -> None:
    """Put the checks around Triton's own functions, in this process only."""
    jit.JITFunction.create_binder = _checking_binder(jit.JITFunction.create_binder)
    autotuner.Config.__init__ = _checking_config(autotuner.Config.__init__)


def _checking_binder(create_binder: Callable[..., None]) -> Callable[..., None]:
    """Names only: types are checked once for each set of values, when the backend parses the options."""
    known = options.OPTIONS.keys()

    @functools.wraps(create_binder)
    def create(self: Any, backend: Any) -> None:
        create_binder(self, backend)
        bind = self.binder

        def checking(*args: Any, **kwargs: Any) -> Any:
            bound = bind(*args, **kwargs)
            excess = bound[-1]
            if excess.keys() - known:
                options.check(excess, f"kernel {self.__name__}", self.arg_names)
            return bound

        self.binder = checking

    return create


def _checking_config(init: Callable[..., None]) -> Callable[..., None]:
    """Accepts every option, and adds to the kernel's meta-parameters those that Triton's Config would drop."""
    signature = inspect.signature(init)
    rest = next((p.name for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD), "")
    named = [name for name in signature.parameters if name in options.OPTIONS]

    @functools.wraps(init)
    def checking(self: Any, *args: Any, **kwargs: Any) -> None:
        given = signature.bind(self, *args, **kwargs).arguments
        extra = given.get(rest, {})
        options.check(
            {**{name: given[name] for name in named if name in given}, **extra}, "triton.Config", ["pre_hook"]
        )
        init(self, *args, **kwargs)
        carried = self.all_kwargs()
        dropped = {name: value for name, value in extra.items() if value is not None and name not in carried}
        self.kwargs = {**self.kwargs, **dropped}

    return checking
