"""Forks workers of pytest-xdist from a process that has the imports of their tests.

The zygote ends all that descends from it, which is right for ranks, and wrong for what a worker leaves behind. So the
process that has imported all forks the zygote, and is itself the parent of the workers:

    pytest ─┬─ this process ─┬─ zygote ── ranks
            │                ├─ worker gw0
                             └─ worker gw1

    {"do": "fork"}, with a memory file of `Surroundings` and the descriptors that a worker gets
          ->  {"is": "forked"}, with a pidfd of the worker
"""

from __future__ import annotations

import importlib
import os
import pickle
import random
import select
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from triton_dist import env
from triton_dist.runtime import backend
from triton_dist.runtime.torch_device import device
from triton_dist.testing.ranks.processes import die_with_parent
from triton_dist.testing.ranks.wire import Channel, close_all, read_all

# In a worker: a pidfd of the pytest process that controls it, which is not its parent; else None.
controller: int | None = None


@dataclass(frozen=True)
class Surroundings:
    """What a worker takes over from the process that controls it.

    Attributes:
        environ: the whole environment.
        directory: the working directory.
        group: the process group: Ctrl-C goes to all that are in it.
    """

    environ: dict[str, str]
    directory: str
    group: int


def fork_zygote(requests: Channel, of_zygote: Sequence[Channel | Any]) -> None:
    """Returns in a fork of this process, which is to serve ranks; this one makes workers, and ends as the fork does.

    Args:
        requests: where the controlling process asks for workers.
        of_zygote: what only the fork needs.
    """
    maker = os.getpid()
    zygote = os.fork()
    if zygote == 0:
        requests.close()
        # Out of the terminal's reach.
        os.setsid()
        die_with_parent(maker, signal.SIGTERM)
        return
    for channel in of_zygote:
        channel.close()
    _serve(requests, zygote)


def _serve(requests: Channel, zygote: int) -> NoReturn:
    """Returns never; in a worker it ends as the program does."""
    zygote_fd = os.pidfd_open(zygote)
    workers: dict[int, int] = {}  # pid by pidfd
    poll = select.poll()
    for fd in (zygote_fd, requests.fileno()):
        poll.register(fd, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == zygote_fd:
                _end_as(zygote)
            elif fd in workers:
                os.waitpid(workers.pop(fd), 0)
                poll.unregister(fd)
                os.close(fd)
            elif (received := requests.receive()) is None:
                # The zygote ends now, too.
                poll.unregister(fd)
            else:
                _, fds = received
                pid = os.fork()
                if pid == 0:
                    requests.close()
                    close_all((zygote_fd, *workers))
                    _become_worker(fds)
                close_all(fds)
                worker = os.pidfd_open(pid)
                workers[worker] = pid
                poll.register(worker, select.POLLIN)
                requests.send({"is": "forked"}, [worker])


def _end_as(process: int) -> NoReturn:
    _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status):
        signum = os.WTERMSIG(status)
        if signum != signal.SIGKILL:
            signal.signal(signum, signal.SIG_DFL)
        os.kill(os.getpid(), signum)
    os._exit(os.waitstatus_to_exitcode(status))


def _become_worker(fds: list[int]) -> NoReturn:
    """Does what execnet has a new interpreter do."""
    global controller
    surroundings_fd, controller, *standard = fds
    surroundings: Surroundings = pickle.loads(read_all(surroundings_fd))
    os.close(surroundings_fd)
    for target, fd in enumerate(standard):
        os.dup2(fd, target)
    close_all(standard)
    for target, name in enumerate(("stdin", "stdout", "stderr")):
        stream = os.fdopen(target, "w" if target else "r", closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    os.setpgid(0, surroundings.group)
    os.chdir(surroundings.directory)
    env.replace(surroundings.environ)
    sys.argv[:] = ["-c"]
    importlib.invalidate_caches()
    _be_unlike_other_workers()
    _take_all_cores()
    exec(eval(sys.stdin.readline()), {"__name__": "__main__", "__builtins__": __builtins__})
    # Up to the bottom of the stack, so that the interpreter ends as any does.
    raise SystemExit


def _be_unlike_other_workers() -> None:
    """Gives random numbers of its own to each worker."""
    random.seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.seed()


def _take_all_cores() -> None:
    """Undoes what is for ranks alone: one thread each, and fewer NPUs than the host has."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    if not env.OMP_NUM_THREADS.is_set():
        torch.set_num_threads(len(os.sched_getaffinity(0)))
    if backend.active() == "sim":
        device.count_devices()
