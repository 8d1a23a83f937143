"""Ranks for a benchmark: forks of a process that has imported everything and run nothing.

`python -m ci.bench.simulator.job PROGRAM WORLD_SIZE` starts them. Each line on its standard input has every rank run
the program once, and gives a line with what the ranks returned, as a JSON list.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from ci.bench.simulator import programs
from triton_dist import env

_HEAP_BYTES = 1 << 20


class Ranks:
    """A running job of `world_size` ranks, all of which have set up `program` (a function of programs.py)."""

    def __init__(self, program: str, world_size: int) -> None:
        command = [sys.executable, "-m", "ci.bench.simulator.job", program, str(world_size)]
        environ = env.child_environ(TRITON_DIST_SIM_NPUS=world_size)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ)
        self._what = f"{program} of {world_size} ranks"

    def run(self) -> list[Any]:
        """Runs the program once on all ranks; what they returned, by rank."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the benchmark {self._what} has failed; its own words are above")
        answers: list[Any] = json.loads(line)
        return answers

    def close(self) -> None:
        """Ends the ranks."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@contextlib.contextmanager
def ranks(program: str, world_size: int) -> Iterator[Ranks]:
    """A job that ends with the block."""
    job = Ranks(program, world_size)
    try:
        yield job
    finally:
        job.close()


def _become_rank(program: str, rank: int, world_size: int, commands: int, answers: int, port: int) -> None:
    import shmem as ash
    import torch

    torch.npu.set_device(rank)  # type: ignore[attr-defined]
    attributes = ash.InitAttr()
    attributes.my_rank, attributes.n_ranks = rank, world_size
    attributes.local_mem_size, attributes.ip_port = _HEAP_BYTES, f"tcp://127.0.0.1:{port}"
    assert ash.aclshmem_init(attributes) == 0
    run = getattr(programs, program)(rank, world_size)
    while os.read(commands, 1):
        os.write(answers, (json.dumps(run()) + "\n").encode())
    ash.aclshmem_finalize()


def _serve(program: str, world_size: int) -> None:
    # Before the fork: what is imported now is shared by all ranks.
    for module in ("shmem", "torch", "triton", "triton.compiler", "ci.bench.simulator.kernels"):
        importlib.import_module(module)
    port = _free_port()
    gc.collect()
    gc.freeze()
    children: list[int] = []
    commands: list[int] = []
    answers: list[TextIO] = []
    for rank in range(world_size):
        command_end, command = os.pipe()
        answer, answer_end = os.pipe()
        child = os.fork()
        if child == 0:
            for other in commands:
                os.close(other)
            os.close(command)
            status = 1
            try:
                _become_rank(program, rank, world_size, command_end, answer_end, port)
                status = 0
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(status)
        os.close(command_end)
        os.close(answer_end)
        children.append(child)
        commands.append(command)
        answers.append(os.fdopen(answer))
    try:
        for _ in sys.stdin:
            for command in commands:
                os.write(command, b"\n")
            print(json.dumps([json.loads(answer.readline()) for answer in answers]), flush=True)
        for command in commands:
            os.close(command)
    except BaseException:
        for child in children:
            os.kill(child, signal.SIGKILL)
        raise
    finally:
        for child in children:
            os.waitpid(child, 0)


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
