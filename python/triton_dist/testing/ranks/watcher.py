"""Answers pytest's questions about a rank while its main thread is busy, or stuck."""

from __future__ import annotations

import faulthandler
import os
import queue
import signal
import sys
import threading
import traceback
from types import CodeType, FrameType
from typing import Any

from triton_dist.testing.ranks.processes import let_debuggers_in
from triton_dist.testing.ranks.wire import Channel, shortened

# Loaded in ranks that use the simulator, and only then able to tell.
_SESSION_MODULE = "triton_dist.runtime.session"

# Has the C part of faulthandler write stacks, where a rank is too stuck for its watcher. Not one that programs use.
STACKS_SIGNAL = signal.SIGRTMAX - 3


def write_stacks_to(fd: int) -> None:
    """Has faulthandler write to `fd`, which must stay open, when this process crashes or gets STACKS_SIGNAL."""
    faulthandler.enable(fd, all_threads=True)
    faulthandler.register(STACKS_SIGNAL, fd, all_threads=True)


class Watcher:
    """Reads a rank's channel in a thread of its own, and ends the rank when pytest is not there any more."""

    def __init__(self, channel: Channel, outermost: CodeType) -> None:
        """`outermost` is the function whose callees are the test's: frames up to it are left out of stacks."""
        self._channel = channel
        self._terminals: queue.SimpleQueue[tuple[int, int] | None] = queue.SimpleQueue()
        self._outermost = outermost
        self._thread = threading.Thread(target=self._watch, name="triton-dist-watcher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wait_to_leave(self) -> None:
        """Waits until the worker functions of all ranks have returned. Then there is nothing left to watch."""
        self._thread.join()

    def ask_for_terminal(self, what: str) -> tuple[int, int] | None:
        """Descriptors of pytest's terminal, to read from and to write to; None if it cannot be had.

        Args:
            what: why, in a line for the user.
        """
        if not self._channel.send({"is": "stopped", "what": shortened(what)}):
            return None
        return self._terminals.get()

    def _watch(self) -> None:
        while (received := self._channel.receive()) is not None:
            message, fds = received
            if message["do"] == "leave":
                return
            if message["do"] == "use terminal":
                self._terminals.put((fds[0], fds[1]) if len(fds) == 2 else None)
                continue
            let_debuggers_in()
            self._channel.send({"is": "explained", "stacks": shortened(self._stacks()), "waits": _waits()})
        # pytest keeps its end open for as long as it has ranks: it is gone, and must not leave any.
        os.kill(os.getpid(), signal.SIGKILL)

    def _stacks(self) -> str:
        """The Python stacks of all threads but this one, innermost frame last."""
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        parts = []
        for ident, frame in sys._current_frames().items():
            if ident != self._thread.ident:
                lines = traceback.StackSummary.extract(_frames_within(frame, self._outermost)).format()
                parts.append(f"{names.get(ident, 'a thread not made by Python')}:\n" + "".join(lines))
        return "\n".join(parts)


def _frames_within(innermost: FrameType, outermost: CodeType) -> list[tuple[FrameType, int]]:
    """Frames and line numbers from the callee of `outermost`, or the bottom if that is not there, to `innermost`."""
    frames: list[tuple[FrameType, int]] = []
    frame: FrameType | None = innermost
    while frame is not None and frame.f_code is not outermost:
        frames.append((frame, frame.f_lineno))
        frame = frame.f_back
    return frames[::-1]


def _waits() -> list[dict[str, Any]]:
    session = sys.modules.get(_SESSION_MODULE)
    if session is None:
        return []
    try:
        waits: list[dict[str, Any]] = session.describe_waits()
    except Exception as error:
        return [{"primitive": f"(not known: {type(error).__name__}: {error})"}]
    return waits
