"""What a test can change of its process and of Python: noted at a rank's birth, put back after each test."""

from __future__ import annotations

import decimal
import gc
import locale
import logging
import os
import resource
import signal
import socket
import sys
import tempfile
import threading
import warnings
from dataclasses import dataclass
from types import ModuleType
from typing import Any

# Modules whose functions and classes a test may have replaced without putting them back.
_WATCHED = (
    "builtins",
    "os",
    "os.path",
    "sys",
    "time",
    "random",
    "threading",
    "subprocess",
    "socket",
    "pickle",
    "numpy",
    "torch",
    "torch.nn.functional",
    "torch.distributed",
    "torch.distributed.distributed_c10d",
    "torch.npu",
    "torch_npu",
    "triton",
    "triton.language",
    "triton.runtime.driver",
    "triton_dist.language",
    "triton_dist.language.extra.libshmem_device",
    "triton_dist.env",
    "shmem",
)
_RESTORED_OF_SYS = ("excepthook", "unraisablehook", "displayhook", "breakpointhook", "meta_path", "path_hooks")
_LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_NOFILE, resource.RLIMIT_STACK, resource.RLIMIT_CORE)


@dataclass(frozen=True)
class ProcessState:
    """As it was at the birth of a rank.

    Attributes:
        names: functions and classes of the watched modules.
        others: everything else, by name.
    """

    names: dict[str, dict[str, Any]]
    others: dict[str, Any]


def snapshot() -> ProcessState:
    """The state as it is now."""
    names = {
        name: {key: value for key, value in vars(module).items() if callable(value)}
        for name in _WATCHED
        if isinstance(module := sys.modules.get(name), ModuleType)
    }
    root = logging.getLogger()
    numpy: Any = sys.modules.get("numpy")
    return ProcessState(
        names,
        {
            "signals": {number: signal.getsignal(number) for number in signal.valid_signals()},
            "blocked": signal.pthread_sigmask(signal.SIG_BLOCK, ()),
            "umask": _umask(),
            "affinity": os.sched_getaffinity(0),
            "sys": {name: getattr(sys, name) for name in _RESTORED_OF_SYS},
            "meta_path": list(sys.meta_path),
            "path_hooks": list(sys.path_hooks),
            "recursion": sys.getrecursionlimit(),
            "switch": sys.getswitchinterval(),
            "excepthook": threading.excepthook,
            "filters": list(warnings.filters),
            "showwarning": warnings.showwarning,
            "logging": (root.level, list(root.handlers), logging.root.manager.disable),
            "locale": locale.setlocale(locale.LC_ALL),
            "decimal": decimal.getcontext().copy(),
            "numpy": (numpy.geterr(), numpy.get_printoptions()) if numpy is not None else None,
            "gc": (gc.isenabled(), gc.get_threshold()),
        },
    )


def restore(state: ProcessState) -> None:
    """Puts back what can be put back."""
    was = state.others
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number, handler in was["signals"].items():
        if signal.getsignal(number) != handler and handler is not None:
            signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, was["blocked"])
    # A directory that nobody removes.
    os.chdir("/")
    os.umask(was["umask"])
    os.sched_setaffinity(0, was["affinity"])
    for name, value in was["sys"].items():
        setattr(sys, name, value)
    sys.meta_path[:] = was["meta_path"]
    sys.path_hooks[:] = was["path_hooks"]
    sys.settrace(None)
    sys.setprofile(None)
    threading.settrace(None)
    threading.setprofile(None)
    sys.setrecursionlimit(was["recursion"])
    sys.setswitchinterval(was["switch"])
    threading.excepthook = was["excepthook"]
    warnings.filters[:] = was["filters"]  # type: ignore[index]
    warnings._filters_mutated()  # type: ignore[attr-defined]
    warnings.showwarning = was["showwarning"]
    root = logging.getLogger()
    level, handlers, disabled = was["logging"]
    root.setLevel(level)
    root.handlers[:] = handlers
    logging.disable(disabled)
    if locale.setlocale(locale.LC_ALL) != was["locale"]:
        locale.setlocale(locale.LC_ALL, was["locale"])
    decimal.setcontext(was["decimal"].copy())
    if was["numpy"] is not None:
        import numpy

        numpy.seterr(**was["numpy"][0])
        numpy.set_printoptions(**was["numpy"][1])
    tempfile.tempdir = None
    socket.setdefaulttimeout(None)
    enabled, thresholds = was["gc"]
    (gc.enable if enabled else gc.disable)()
    gc.set_threshold(*thresholds)
    for name in ("last_type", "last_value", "last_traceback"):
        if hasattr(sys, name):
            delattr(sys, name)


def is_like(state: ProcessState) -> bool:
    """Whether nothing is left that `restore` does not put back."""
    for name, before in state.names.items():
        module = sys.modules.get(name)
        if module is None:
            return False
        now = vars(module)
        if any(now.get(key) is not value for key, value in before.items()):
            return False
    return True


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
