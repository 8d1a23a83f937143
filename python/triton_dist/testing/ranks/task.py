"""What a job's ranks are told: where they are, and what to call."""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from triton_dist.testing.ranks.coverage_data import CoverageSettings
from triton_dist.testing.ranks.modules import ModuleSource
from triton_dist.testing.ranks.rewriting import AssertionSettings


class TaskError(TypeError):
    """The worker function or its arguments cannot be sent to other processes."""


@dataclass(frozen=True)
class Task:
    """The same for all ranks of a job.

    Attributes:
        world_size: how many ranks there are.
        backend: of torch.distributed.
        environ: the whole environment, apart from what differs from rank to rank.
        directory: the working directory.
        sys_path, argv: as in the process of the test.
        modules: modules that only pytest knows how to find, by name.
        assertions: how assert statements explain themselves; None if they do not.
        traceback_style: as pytest's --tb has it.
        call: the pickled worker function and its further arguments.
        seed: of the test's random numbers; each rank adds its number.
        coverage: how pytest-cov measures the run; None if it does not.
        terminal: whether pytest can lend its terminal to a rank.
        debugged: the rank whose failure the user wants to look at with pdb; None if none.
    """

    world_size: int
    backend: str
    environ: dict[str, str]
    directory: str
    sys_path: list[str]
    argv: list[str]
    modules: dict[str, ModuleSource]
    assertions: AssertionSettings | None
    traceback_style: str
    call: bytes
    seed: int
    coverage: CoverageSettings | None
    terminal: bool
    debugged: int | None


def lasting_key(environ: Mapping[str, str]) -> str:
    """Stands for what a process cannot change once libraries have read it: its environment, apart from its NPUs."""
    lasting = sorted(
        (name, value)
        for name, value in environ.items()
        if name not in _PER_TEST and not name.startswith(_PER_TEST_PREFIX)
    )
    return hashlib.sha256(repr(lasting).encode()).hexdigest()


# Variables that tell a test from others, and are read anew by each: torch and this package ask for them when ranks
# meet. Which real NPUs a rank has is compared apart from these.
_PER_TEST = frozenset(
    {
        "ASCEND_RT_VISIBLE_DEVICES",
        "LOCAL_WORLD_SIZE",
        "MASTER_ADDR",
        "MASTER_PORT",
        "TRITON_DIST_MASTER_PORT",
        "TRITON_DIST_SESSION",
        "TRITON_DIST_SHMEM_PORT",
        "TRITON_DIST_SIM_NPUS",
        "WORLD_SIZE",
    }
)
_PER_TEST_PREFIX = "PYTEST_"


def pickled_call(function: Callable[..., object], args: tuple[object, ...]) -> bytes:
    """`function` and `args` in the form that `Task.call` has.

    Raises:
        TaskError: one of them cannot be pickled; the message says which, and why.
    """
    for what, value in ((describe(function), function), *((f"args[{i}] {a!r:.80}", a) for i, a in enumerate(args))):
        try:
            pickle.dumps(value)
        except Exception as error:
            raise TaskError(
                f"{what} cannot be sent to the ranks, which are other processes ({type(error).__name__}: {error}). "
                "Use a function at the top of a module, and arguments that can be pickled"
            ) from error
    return pickle.dumps((function, args))


def describe(function: Callable[..., object]) -> str:
    """The function's name, and file and line where it has them."""
    name = getattr(function, "__qualname__", None) or repr(function)
    code: Any = getattr(function, "__code__", None)
    if code is None:
        return f"worker function {name}"
    return f"worker function {name} ({os.path.relpath(code.co_filename)}:{code.co_firstlineno})"


def module_names(function: Callable[..., object]) -> set[str]:
    """Modules that must be importable before the call can be unpickled."""
    names = {getattr(function, "__module__", None)}
    inner = getattr(function, "func", None) or getattr(function, "__wrapped__", None)
    if callable(inner):
        names |= module_names(inner)
    return {name for name in names if name in sys.modules}
