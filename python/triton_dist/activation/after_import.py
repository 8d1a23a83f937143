"""What is done to a module of somebody else's right after it has been imported."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from triton_dist import env
from triton_dist.activation import real_packages
from triton_dist.activation.report import reported

# In seconds: until who waits for rank 0 leaves it to torch, and between two looks.
_TIME_TO_LISTEN = 2.0
_SHORTEST_PAUSE = 0.001
_LONGEST_PAUSE = 0.02


def watch(name: str, then: Callable[[ModuleType], None]) -> ModuleSpec | None:
    """Spec of module `name` whose loader calls `then` when the module is there; None if nobody has it."""
    spec = real_packages.find(name)
    if spec is None or spec.loader is None:
        return None
    loader = spec.loader
    load = loader.exec_module

    def load_and_call(module: ModuleType) -> None:
        load(module)
        del loader.exec_module  # the class's own again
        then(module)

    loader.exec_module = load_and_call  # type: ignore[method-assign]
    return spec


def activate_triton(_triton: ModuleType) -> None:
    """Makes simulated NPUs Triton's driver when the backend is `sim`; else our stage is added to triton-ascend's."""
    with reported("kernels cannot run on simulated NPUs"):
        from triton_dist.runtime import backend

        if backend.active() == "sim":
            from triton_dist.compiler import activate

            activate.activate()
            if env.TRITON_INTERPRET.get():
                from triton_dist.interpreter import activate as interpreter

                interpreter.activate()
        else:
            with reported("distributed ops cannot be compiled for Ascend NPUs"):
                from triton_dist.compiler.npu import activate as npu

                npu.activate()


def use_leased_port(rendezvous: Any) -> None:
    """Has torch.distributed meet at the port of the test's lease instead of the one that code hard-codes.

    Both tcp:// and env:// make their store with one function. The variable is read at each call, so that a process may
    get its lease after it has imported torch. Under torchrun the store is the agent's, at the agent's port.
    """
    create = rendezvous._create_c10d_store

    def create_at_leased_port(hostname: str, port: int, rank: int, *arguments: object, **options: object) -> object:
        leased = env.TRITON_DIST_MASTER_PORT.get()
        if leased is not None and not rendezvous._torchelastic_use_agent_store():
            hostname, port = "127.0.0.1", leased
            if rank != 0:
                _wait_for_listener(hostname, port)
        return create(hostname, port, rank, *arguments, **options)

    rendezvous._create_c10d_store = create_at_leased_port


def _wait_for_listener(hostname: str, port: int) -> None:
    """Waits until somebody listens at `port`, for a few seconds at most.

    Processes that start together find rank 0 not listening yet as often as not, and torch's store then waits between a
    quarter and three quarters of a second before it tries again.
    """
    deadline = time.monotonic() + _TIME_TO_LISTEN
    pause = _SHORTEST_PAUSE
    while time.monotonic() < deadline:
        with socket.socket() as attempt:
            if attempt.connect_ex((hostname, port)) == 0:
                return
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
