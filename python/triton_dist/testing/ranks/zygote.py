"""The process that ranks are forked from: it has imported what they need, and run nothing.

A process forked from one that has run an OpenMP region, a backward or a collective hangs in its own first one.
So the zygote is a fresh interpreter, runs no operator, and has no thread but its own.

It serves one pytest process, over one channel, one job at a time:

    {"do": "fork", "rank": 3}, with the rank's descriptors   ->  {"is": "forked", "rank": 3, "pid": 4242}
    a rank ends    ->  {"is": "exited", "rank": 3, "status": its wait status, "ended": whether it was told to}
    {"do": "end"}: end whatever is left of the job           ->  {"is": "ended"}

It ends with the process that it serves, and all its descendants end before it. Being a subreaper it sees every one
of them, whatever process group or session they moved to.
"""

from __future__ import annotations

import gc
import importlib
import os
import select
import signal
import sys
import time
import traceback
from typing import Any, NoReturn

from triton_dist.runtime import backend
from triton_dist.testing.ranks import rank
from triton_dist.testing.ranks.processes import become_subreaper, die_with_parent, end_descendants
from triton_dist.testing.ranks.wire import Channel, close_all

# What ranks import before they come to the test. One that is missing or broken is left to the test that wants it.
_PRELOADED = (
    "pytest",
    "numpy",
    "torch",
    "torch.distributed",
    # torch.testing.assert_close imports it, with sympy, at its first call: 0.7 s of CPU time in every rank.
    "torch.distributed.tensor",
    "triton",
    "triton.language",
    "triton_dist.language",
    "triton_dist.language.extra.libshmem_device",
)
_PRELOADED_FOR_SIMULATOR = (
    "shmem",
    "torch_npu",
    "triton_dist.compiler.backend",
    "triton_dist.runtime.launcher",
    # Of an editable install: the first import looks whether csrc must be built again.
    "triton_dist._build_info",
)


def main(settings: dict[str, Any]) -> NoReturn:
    """Serves until the other end of the channel is closed.

    Args:
        settings: "channel", the descriptor to serve on; "parent", the pid to end with, or None.
    """
    if settings["parent"] is not None:
        die_with_parent(settings["parent"], signal.SIGTERM)
    channel = Channel.of_descriptor(settings["channel"])
    began = time.monotonic()
    _preload()
    _compute_ahead()
    become_subreaper()
    # Without this a rank's first collection would touch, and so copy, every page that it shares with the zygote.
    gc.collect()
    gc.freeze()
    zygote = Zygote(channel)
    channel.send({"is": "ready", "seconds": time.monotonic() - began})
    zygote.serve()
    os._exit(0)


def _preload() -> None:
    simulated = backend.active() == "sim"
    for name in _PRELOADED + (_PRELOADED_FOR_SIMULATOR if simulated else ()):
        try:
            importlib.import_module(name)
        except BaseException:
            # Kept for the one who asks why a rank had to import it again.
            traceback.print_exc()


def _compute_ahead() -> None:
    """Computes what every rank would compute for itself with its first kernel: hashes of files, no operators."""
    compiler = sys.modules.get("triton.compiler.compiler")
    if compiler is not None:
        compiler.triton_key()


class Zygote:
    """The serving side, from the first fork to the end of the process."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._ranks: dict[int, int] = {}  # pid -> rank
        self._stopped = False
        self._ending = False
        # Signals only have to end the wait in `serve`; what there is to do is found out there.
        self._wake, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wake_writer = wake
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, *_: object) -> None:
        self._stopped = True

    def serve(self) -> None:
        """Returns when nobody is to be served any more, and no descendant is left."""
        while not self._stopped:
            sources: list[Channel | int] = [self._channel, self._wake]
            ready, _, _ = select.select(sources, [], [])
            if self._wake in ready:
                os.read(self._wake, 4096)
                self._reap()
            if self._channel in ready:
                received = self._channel.receive()
                if received is None:
                    break
                message, fds = received
                if message["do"] == "fork":
                    self._fork(message["rank"], fds)
                else:
                    self._end()
                    self._channel.send({"is": "ended"})
        self._end()

    def _fork(self, number: int, fds: list[int]) -> None:
        parent = os.getpid()
        # What is in a buffer now would be written by the child as well.
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            self._become_rank(number, parent, fds)
        self._ranks[pid] = number
        close_all(fds)
        self._channel.send({"is": "forked", "rank": number, "pid": pid})

    def _become_rank(self, number: int, parent: int, fds: list[int]) -> NoReturn:
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.setpgid(0, 0)
            die_with_parent(parent)
            close_all((self._wake, self._wake_writer))
            self._channel.close()
            status = rank.main(number, rank.Descriptors.of_list(fds))
        except BaseException:
            traceback.print_exc()
        finally:
            # Never back into the zygote's loop, and none of its exit handlers.
            os._exit(status)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._exited(pid, status)

    def _exited(self, pid: int, status: int) -> None:
        number = self._ranks.pop(pid, None)
        if number is not None:
            self._channel.send({"is": "exited", "rank": number, "status": status, "ended": self._ending})

    def _end(self) -> None:
        # Those that have died already did so on their own account.
        self._reap()
        self._ending = True
        end_descendants(set(self._ranks), self._exited)
        self._ending = False
