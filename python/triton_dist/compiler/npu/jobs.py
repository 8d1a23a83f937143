"""Compiles many kernels at once, each in a process of its own: a compiler that crashes ends one of them only."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from triton_dist.compiler.npu.compilation import FAILED, Request, Result, compile_kernel


@dataclass(frozen=True)
class _Running:
    position: int
    request: Request
    process: BaseProcess
    answer: Connection


def default_count() -> int:
    """How many kernels are compiled at once: one for each core that this process may use."""
    return len(os.sched_getaffinity(0))


def run(
    requests: Iterable[Request], count: int, compile_: Callable[[Request], Result] = compile_kernel
) -> Iterator[tuple[int, Result]]:
    """The position of each request and what came of it, as they end; at most `count` are compiled at a time.

    Children are forked, so that they have what this process has imported; it must have no other threads that hold
    locks. All of them are ended when the caller stops early.
    """
    context = multiprocessing.get_context("fork")
    waiting = list(enumerate(requests))[::-1]
    running: list[_Running] = []
    try:
        while waiting or running:
            while waiting and len(running) < count:
                position, request = waiting.pop()
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(target=_work, args=(compile_, request, theirs), daemon=True)
                process.start()
                theirs.close()
                running.append(_Running(position, request, process, ours))
            ready = multiprocessing.connection.wait([one.answer for one in running])
            for one in [one for one in running if one.answer in ready]:
                running.remove(one)
                yield one.position, _received(one)
    finally:
        for one in running:
            one.process.terminate()
            one.process.join()
            one.answer.close()


def _work(compile_: Callable[[Request], Result], request: Request, answer: Connection) -> None:
    answer.send(compile_(request))
    answer.close()


def _received(one: _Running) -> Result:
    try:
        result: Result = one.answer.recv()
    except EOFError:
        one.process.join()
        code = one.process.exitcode or 0
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        text = f"the compiler's front end crashed on this kernel ({how})"
        result = Result(one.request.name, one.request.soc, FAILED, message=text)
    finally:
        one.answer.close()
    one.process.join()
    return result
