"""The launches of this process that have not ended: how the host waits for them, and what becomes of them at its end.

Kernels run beside the host, in streams. Host code waits in slices, so that Ctrl-C works and the other ranks are
watched; while it waits, its thread runs programs as well.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing.util
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from triton_dist import env
from triton_dist.runtime import native, soc
from triton_dist.runtime.native import HostState

SLICE_NS = 50_000_000
"""How long native code waits before Python looks at signals and at the other ranks."""

_SHORT_NS = 100_000
# How long all programs must have been blocked to be taken for waiting for others.
_BLOCKED_NS = 20_000_000
_BLOCKED_AT_EXIT_NS = 1_000_000_000
_STOP_NS = 2_000_000_000

_watch: Callable[[bool], None] | None = None


def watch(check: Callable[[bool], None] | None) -> None:
    """Has `check` called between the slices of every wait; what it raises ends the wait. None: nothing.

    It is told whether the wait may be in vain: nothing says that what it waits for will come.
    """
    global _watch
    _watch = check


@functools.cache
def library() -> native.Library:
    """The native library, ready for launches: cores and workers as the environment says, torch's device connected."""
    loaded = native.library()
    simulated = soc.simulated()
    loaded.configure(simulated.aic, simulated.aiv, env.TRITON_DIST_SIM_WORKERS.get() or 0)
    from triton_dist.runtime.torch_device.library import library as torch_device

    torch_device().tdist_npu_connect(
        loaded.functions(
            "unfinished",
            "memory_in_use",
            "stream_end",
            "stream_reached",
            "mark",
            "mark_ns",
            "stream_wait_mark",
            "mark_free",
        ),
        _wait_for,
    )
    _end_with_process()
    return loaded


def is_loaded() -> bool:
    """Whether this process has launched anything: if not, there is nothing to wait for."""
    return library.cache_info().currsize > 0


@contextlib.contextmanager
def host_state(state: HostState) -> Iterator[None]:
    """Tells all ranks of the job what this thread does inside; does nothing where no job was ever joined."""
    if native.library.cache_info().currsize == 0:
        yield
        return
    loaded = native.library()
    before = loaded.host_state(state)
    try:
        yield
    finally:
        loaded.host_state(before)


def look(may_be_stuck: bool = True) -> None:
    """What every wait of the host does now and then; raises what ends the wait. `may_be_stuck`: see :func:`watch`."""
    if _watch is not None:
        _watch(may_be_stuck)


def _wait(ready: Callable[[int], bool]) -> None:
    # Most waits are short, and nobody asks what a host does for so little time.
    if ready(_SHORT_NS):
        return
    with host_state(HostState.SYNCHRONIZES):
        while not ready(SLICE_NS):
            look()


def synchronize() -> None:
    """Waits until every stream of this process has done everything.

    Raises:
        NativeError: a kernel has failed, in whatever stream; the text has its line and that of its launch.
        PeerGoneError: a kernel waits for ranks that are not there any more.
        DeadlockError: no rank can go on.
    """
    if is_loaded():
        _wait(library().synchronize)


def settle() -> None:
    """Waits until the launches of this process have ended, or wait themselves for what only others can do.

    For barriers of the host: what was launched before one is done behind it, as where a barrier goes through the
    streams; but a kernel that waits for a rank which comes to the barrier first does not keep the host from it.
    """
    _synchronize_unless_blocked(_BLOCKED_NS)


def _synchronize_unless_blocked(nanoseconds: int) -> bool:
    """As :func:`synchronize`, but False once all programs have been blocked for so long."""
    if not is_loaded():
        return True
    loaded = library()
    if loaded.unfinished() == 0:
        return True
    # Not HostState.SYNCHRONIZES: the host goes on whatever the launches do.
    while not loaded.synchronize(min(SLICE_NS, nanoseconds)):
        if loaded.blocked_ns() > nanoseconds:
            return False
        look(may_be_stuck=False)
    return True


def wait_for_memory(address: int, bytes_: int) -> None:
    """Waits until what comes before the end of the current stream, and was given the memory, has ended.

    Raises:
        NativeError: a kernel has failed.
    """
    if is_loaded() and bytes_ > 0:
        loaded = library()
        if loaded.unfinished() != 0:
            stream = current_stream()
            _wait(lambda slice_ns: loaded.memory_wait(stream, address, bytes_, slice_ns))


def wait_for_users(address: int, bytes_: int) -> None:
    """Waits until nothing, in whatever stream, was given the memory and has not ended."""
    if is_loaded():
        loaded = library()
        if loaded.memory_in_use(address, bytes_):
            _wait(lambda slice_ns: loaded.synchronize(slice_ns) or not loaded.memory_in_use(address, bytes_))


def current_stream() -> int:
    """The stream that is current in this thread, by the number under which the native library knows it."""
    from triton_dist.runtime.torch_device.library import library as torch_device

    return int(torch_device().tdist_npu_current_stream(-1))


def default_stream() -> int:
    """The default stream of the current NPU, by the number under which the native library knows it."""
    import torch

    return -1 - int(torch.get_device_module("npu").current_device())


def _wait_for(what: str, number: int, address: int, bytes_: int) -> None:
    """What torch's device calls when an operator, a stream or an event must wait (csrc/torch/launches.cpp)."""
    loaded = library()
    if what == "memory":
        _wait(lambda slice_ns: loaded.memory_wait(number, address, bytes_, slice_ns))
    elif what == "stream":
        position = loaded.stream_end(number)
        _wait(lambda slice_ns: loaded.stream_wait(number, position, slice_ns))
    elif what == "mark":
        _wait(lambda slice_ns: loaded.mark_wait(number, slice_ns))
    else:
        _wait(loaded.synchronize)


def give_up() -> None:
    """Forgets the launches that have not ended: nobody will wait for them any more."""
    if is_loaded():
        library().give_up(_STOP_NS)


# ------------------------------------------------------------------------------------------ the end


def _end_with_process() -> None:
    # Also run where multiprocessing ends a child without the interpreter's own exit handlers; before those that tell
    # the other ranks that this one has gone (runtime/job.py), since its launches may be what they wait for.
    multiprocessing.util.Finalize(None, end, exitpriority=10)


def end() -> None:
    """Lets the launches of a process that is about to exit end, and then the threads that run them.

    Launches whose programs are all blocked for a second are given up, with a line on stderr; so are all of them when
    an error ends the process.
    """
    if not is_loaded():
        return
    loaded = library()
    if sys.exc_info()[1] is None and getattr(sys, "last_value", None) is None:
        try:
            if not _synchronize_unless_blocked(_BLOCKED_AT_EXIT_NS):
                _report_given_up(loaded.describe_waits())
        except RuntimeError as error:
            print(f"triton_dist: {error}", file=sys.stderr, flush=True)
    loaded.stop(_STOP_NS)


def _report_given_up(waits: list[dict[str, Any]]) -> None:
    blocked = [wait for wait in waits if wait["kernel"]]
    where = ""
    if blocked:
        first = blocked[0]
        place = f" at {first['file']}:{first['line']}" if first["file"] else ""
        where = f"; {first['kernel']} waits in {first['primitive']}{place}"
    print(
        f"triton_dist: the process ends, and kernels that wait were given up ({len(blocked)} programs{where}). "
        "Call torch.npu.synchronize() before the end to wait for them",
        file=sys.stderr,
        flush=True,
    )


def _register_again_in_child() -> None:
    if is_loaded():
        _end_with_process()


os.register_at_fork(after_in_child=_register_again_in_child)
