"""Runs a function in several processes that import next to nothing: ranks without torch.

Every process is ended when its test ends, and nothing waits longer than the deadline.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

# Ranks are forked from a process that has done the imports and nothing else.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["pytest", "triton_dist._build_info", "triton_dist.shims.shmem"])
# What a job of tests around this one has set must not reach the ranks here.
_TAKEN_OUT = (
    "TRITON_DIST_SESSION",
    "TRITON_DIST_JOB_SECRET",
    "SHMEM_UID_SESSION_ID",
    "SHMEM_UID_SOCK_IFNAME",
    "SHMEM_UID_SOCK_IFNAM",
    "SHMEM_INSTANCE_PORT_RANGE",
)


@dataclass
class Outcome:
    """How a rank ended.

    Attributes:
        value: what its function returned.
        error: the error that ended it, as `Class: text`; "" if there was none.
        warnings: texts of the warnings it gave.
        exit_code: of the process; negative for a signal, None if it had to be ended.
        seconds: from the start of its function to its end.
    """

    value: Any = None
    error: str = ""
    warnings: list[str] = field(default_factory=list)
    exit_code: int | None = None
    seconds: float = 0.0


def run(
    function: Callable[..., Any],
    ranks: int | Sequence[tuple[Any, ...]],
    *arguments: Any,
    deadline: float = 30.0,
    environment: dict[str, str] | None = None,
) -> list[Outcome]:
    """Calls `function(rank, world_size, *arguments)` in a process for each rank.

    `ranks` may also be a list of argument tuples, one a process, that take the place of rank and world size.
    """
    calls = [(rank, ranks) for rank in range(ranks)] if isinstance(ranks, int) else list(ranks)
    outcomes = [Outcome() for _ in calls]
    with contextlib.ExitStack() as stack:
        processes = []
        pending: dict[multiprocessing.connection.Connection, int] = {}
        for index, call in enumerate(calls):
            ours, theirs = _CONTEXT.Pipe(duplex=False)
            stack.callback(ours.close)
            process = _CONTEXT.Process(
                target=_main, args=(function, (*call, *arguments), theirs, environment or {}), daemon=True
            )
            process.start()
            theirs.close()
            stack.callback(_end, process)
            processes.append(process)
            pending[ours] = index
        until = time.monotonic() + deadline
        while pending and (left := until - time.monotonic()) > 0:
            for ready in multiprocessing.connection.wait(list(pending), left):
                assert isinstance(ready, multiprocessing.connection.Connection)
                index = pending.pop(ready)
                with contextlib.suppress(EOFError):  # it ended without a word
                    outcomes[index] = ready.recv()
        for index, process in enumerate(processes):
            process.join(max(0.0, until - time.monotonic()))
            outcomes[index].exit_code = process.exitcode
    return outcomes


def _end(process: multiprocessing.process.BaseProcess) -> None:
    process.kill()
    process.join()


def _main(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    connection: multiprocessing.connection.Connection,
    environment: dict[str, str],
) -> None:
    import warnings

    from triton_dist import env

    env.apply({**dict.fromkeys(_TAKEN_OUT), **environment})
    outcome = Outcome()
    begin = time.monotonic()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome.value = function(*arguments)
        except BaseException as error:
            outcome.error = f"{type(error).__name__}: {error}"
            raise
        finally:
            outcome.seconds = time.monotonic() - begin
            outcome.warnings = [str(warning.message) for warning in caught]
            connection.send(outcome)


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Waits until `condition()`; fails where it does not come true in time."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "what was waited for did not come"
        time.sleep(0.02)


def new_endpoint() -> str:
    """An endpoint that no other test has: tests run side by side."""
    return f"test {os.getpid()} {secrets.token_hex(8)}"


def values(outcomes: list[Outcome]) -> list[Any]:
    """What the ranks returned; fails if one of them did not."""
    for rank, outcome in enumerate(outcomes):
        assert (outcome.error, outcome.exit_code) == ("", 0), f"rank {rank}: {outcome}"
    return [outcome.value for outcome in outcomes]
