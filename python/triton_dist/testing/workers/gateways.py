"""The controlling process's side: execnet's gateways to processes of this host lead to forks, where that is safe."""

from __future__ import annotations

import os
import pickle
import select
import signal
import subprocess
from typing import Any

import pytest
from execnet import gateway_io
from execnet.gateway_base import Popen2IO

from triton_dist import env
from triton_dist.runtime import backend
from triton_dist.testing.options import is_strict
from triton_dist.testing.ranks.client import ZygoteProcess
from triton_dist.testing.ranks.coverage_data import settings_of
from triton_dist.testing.ranks.wire import Channel, close_all, memory_file
from triton_dist.testing.workers.maker import Surroundings

# How coverage is told to measure every interpreter from its beginning.
_MEASURED_FROM_THE_BEGINNING = ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG")


def wanted(config: pytest.Config) -> bool:
    """Whether forked workers do what new interpreters would.

    They have not imported libraries while coverage looked on, and they have the interpreter options of this process,
    which execnet does not pass on.
    """
    options = set(subprocess._args_from_interpreter_flags()) - {"-B"}  # type: ignore[attr-defined]
    measured = any(env.child_environ().get(name) for name in _MEASURED_FROM_THE_BEGINNING)
    return (
        backend.active() == "sim"
        and not config.getoption("--no-warm-ranks")
        and not is_strict(config)
        and settings_of(config) is None
        and not measured
        and not options
    )


class ForkedWorkers:
    """While installed, execnet's plain `popen` gateways lead to forks of the process that has the imports."""

    def __init__(self, process: ZygoteProcess, requests: Channel) -> None:
        self._process = process
        self._requests: Channel | None = requests
        # What libraries have read there.
        self._environ = env.child_environ()
        self._create = gateway_io.create_io

    def install(self) -> None:
        gateway_io.create_io = self._create_io

    def uninstall(self) -> None:
        gateway_io.create_io = self._create
        self._give_up()

    def _create_io(self, spec: Any, execmodel: Any) -> Any:
        plain = spec.popen and not (spec.python or spec.via or spec.dont_write_bytecode)
        made = self._fork(execmodel) if plain and env.child_environ() == self._environ else None
        return self._create(spec, execmodel) if made is None else made

    def _fork(self, execmodel: Any) -> _ForkIO | None:
        """The way to a new worker; None if there is nobody to fork it any more."""
        if self._requests is None:
            return None
        surroundings = Surroundings(env.child_environ(), os.getcwd(), os.getpgrp())
        to_worker, from_worker = os.pipe(), os.pipe()
        fds = [memory_file("triton-dist-worker", pickle.dumps(surroundings)), os.pidfd_open(os.getpid())]
        fds += [to_worker[0], from_worker[1]]
        sent = self._requests.send({"do": "fork"}, [*fds, 2])
        close_all(fds)
        # Imports may have to end first. Where they fail, this is the end of the channel.
        answer = self._requests.receive() if sent else None
        if answer is None:
            close_all((to_worker[1], from_worker[0]))
            self._give_up()
            return None
        return _ForkIO(to_worker[1], from_worker[0], answer[1][0], execmodel)

    def _give_up(self) -> None:
        if self._requests is not None:
            self._requests.close()
            self._requests = None


class _ForkIO(Popen2IO):
    """As execnet's own for a child, for a process that is not this one's."""

    def __init__(self, to_worker: int, from_worker: int, pidfd: int, execmodel: Any) -> None:
        super().__init__(os.fdopen(to_worker, "wb"), os.fdopen(from_worker, "rb"), execmodel)
        self._pidfd = pidfd

    def wait(self) -> int | None:
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        poll.poll()
        return None

    def kill(self) -> None:
        try:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        except ProcessLookupError:
            return
