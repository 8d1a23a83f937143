"""multiprocessing's start method "spawn", quick: a fork of the zygote takes the place of a new interpreter.

What the child gets is what multiprocessing sends any child that it spawns, and it does with it what such a child
does: it has nothing of this process but that. Only the imports are there already.
"""

from __future__ import annotations

import atexit
import io
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import (
    connection,
    context,
    forkserver,
    popen_fork,
    popen_forkserver,
    process,
    reduction,
    resource_tracker,
    spawn,
)
from typing import Any

from triton_dist import env
from triton_dist.runtime import backend
from triton_dist.runtime.torch_device import device
from triton_dist.testing.ranks import adopted
from triton_dist.testing.ranks.client import ZygoteClient, ZygoteError
from triton_dist.testing.ranks.wire import close_all, memory_file, readable

_LOOK = 0.05


class QuickSpawn:
    """The processes of one call."""

    def __init__(self, zygote: ZygoteClient) -> None:
        self._zygote = zygote
        self._job = zygote.new_job()
        self._children = 0
        # The suite may wait for its processes in several threads.
        self._lock = threading.Lock()

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """While entered, processes that multiprocessing spawns are forked by the zygote."""
        kind: Any = context.SpawnProcess
        original = kind._Popen
        kind._Popen = staticmethod(lambda made: _Child(made, self))
        try:
            yield
        finally:
            kind._Popen = staticmethod(original)

    def fork(self, fds: Sequence[int]) -> tuple[int, int]:
        """Starts a process with copies of `fds`; returns its number among those of the call, and its pid.

        Raises:
            ZygoteError: the zygote is gone.
        """
        with self._lock:
            number = self._children
            self._children += 1
            self._zygote.start_rank(self._job, number, "", fds, keep=False, spawned=True)
            while (message := self._zygote.receive()) is not None:
                if message["is"] == "started" and message["job"] == self._job:
                    return number, message["pid"]
        raise ZygoteError(self._zygote.describe_end())

    def status(self, number: int) -> int:
        """The wait status of a process that has ended."""
        with self._lock:
            while (status := self._zygote.statuses.get((self._job, number))) is None:
                if readable([self._zygote.channel], _LOOK) and self._zygote.receive() is None:
                    return signal.SIGKILL  # with the zygote
            return status

    def end(self) -> None:
        """Ends what is left of the processes and of theirs."""
        with self._lock:
            self._zygote.end_job(self._job, lambda _: None)


class _Child(popen_fork.Popen):
    """As multiprocessing's own class for "spawn", for a process that is not this one's child."""

    method = "spawn"
    # Finds in the child what `duplicate_for_child` has sent, as a child of multiprocessing's fork server does.
    DupFd = popen_forkserver._DupFd

    def __init__(self, made: Any, call: QuickSpawn) -> None:
        self._call = call
        self._fds: list[int] = []
        super().__init__(made)

    def duplicate_for_child(self, fd: int) -> int:
        """What multiprocessing sends in the place of a descriptor: where it stands among those of the child."""
        self._fds.append(fd)
        return len(self._fds) - 1

    def _launch(self, made: Any) -> None:
        buffer = io.BytesIO()
        preparation = spawn.get_preparation_data(made._name)
        spawning: Any = context
        spawning.set_spawning_popen(self)
        try:
            reduction.dump((env.child_environ(), os.getpid()), buffer)
            reduction.dump(preparation, buffer)
            reduction.dump(made, buffer)
        finally:
            spawning.set_spawning_popen(None)
        payload = memory_file("triton-dist-spawn", buffer.getvalue())
        tracker = resource_tracker.getfd()
        try:
            fds = [payload, 1, 2, tracker if tracker is not None else 2, *self._fds]
            self._number, self.pid = self._call.fork(fds)
        finally:
            os.close(payload)
        # Readable as soon as the process has ended, whoever's child it is.
        self.sentinel = os.pidfd_open(self.pid)
        self.finalizer = None

    def poll(self, flag: int = os.WNOHANG) -> int | None:
        if self.returncode is None:
            if flag == os.WNOHANG and not connection.wait([self.sentinel], 0):
                return None
            connection.wait([self.sentinel])
            self.returncode = os.waitstatus_to_exitcode(self._call.status(self._number))
        return self.returncode

    def close(self) -> None:
        if self.sentinel is not None:
            os.close(self.sentinel)
            self.sentinel = None  # type: ignore[assignment]


# --------------------------------------------------------------------------------------- in the child


def main(fds: list[int]) -> int:
    """What the forked process does with the descriptors of `_Child`; returns its exit status."""
    payload, stdout, stderr, tracker, *inherited = fds
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (stdout, 1), (stderr, 2)):
        os.dup2(source, target)
    close_all((null, stdout, stderr))
    resource_tracker._resource_tracker._fd = tracker  # type: ignore[attr-defined]
    forkserver._forkserver._inherited_fds = inherited  # type: ignore[attr-defined]
    adopted.forked_by_zygote = True
    with os.fdopen(payload, "rb") as file:
        file.seek(0)
        environ, parent = pickle.load(file)
        env.replace(environ)
        if backend.active() == "sim":
            device.count_devices()
        process.current_process()._inheriting = True  # type: ignore[attr-defined]
        try:
            spawn.prepare(pickle.load(file))
            made = pickle.load(file)
        finally:
            del process.current_process()._inheriting  # type: ignore[attr-defined]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(time.monotonic_ns() % 2**32)
    status: int = made._bootstrap(os.pidfd_open(parent))
    atexit._run_exitfuncs()
    return status
