"""The programs of an interpreted launch: each runs until it waits, then it is another one's turn.

All run on the thread that launched, as greenlets. So a breakpoint stops them all, Ctrl-C reaches them, and which one
runs when does not depend on the operating system. As on an NPU, no more are in flight than there are cores, and the
rest is queued in order.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import threading
import time
from bdb import BdbQuit
from collections.abc import Callable, Iterator
from typing import Any

import greenlet
from triton.runtime import errors

from triton_dist.interpreter import places
from triton_dist.interpreter.waits import Wait
from triton_dist.runtime import job
from triton_dist.runtime.job import SLICE_NS

Program = tuple[int, int, int]

# Of several words to wait for, one is watched for so long: signals to the others must not wait for long.
_SHORT_SLICE_NS = 200_000
_PEER_LOOK_SECONDS = 0.05
_LONGEST_NAP_SECONDS = 0.001


class InterpreterError(errors.InterpreterError, RuntimeError):  # type: ignore[misc]
    """A program of an interpreted kernel failed. The text says with what, where and which; the cause is chained."""


class Turn:
    """A program in flight.

    Attributes:
        program: its number in the grid, by axis.
        launch: the launch that it belongs to.
        wait: what it waits for; None while it can go on.
        spins: it went on and found only that it has to try again.
        error: what it failed with.
    """

    def __init__(self, launch: Launch, program: Program, body: Callable[[], None]) -> None:
        self.launch = launch
        self.program = program
        self.wait: Wait | None = None
        self.spins = False
        self.error: BaseException | None = None
        self._body = body
        self._greenlet = greenlet.greenlet(self._run)
        # Debuggers trace programs one by one: stepping over a wait must not lead into another program.
        self._trace = sys.gettrace()

    def _run(self) -> None:
        try:
            self._body()
        except greenlet.GreenletExit:
            pass
        except BaseException as error:
            self.error = error

    def resume(self) -> None:
        """Lets it run until it waits or ends."""
        self.wait, self.spins = None, False
        outer_trace, outer = sys.gettrace(), _local.running
        _local.running = self
        sys.settrace(self._trace)
        try:
            self._greenlet.switch()
        finally:
            self._trace = sys.gettrace()
            sys.settrace(outer_trace)
            _local.running = outer

    def pause(self) -> None:
        """Called by the program: gives the turn away."""
        parent = self._greenlet.parent
        assert parent is not None
        parent.switch()
        if self.launch.is_over:
            raise greenlet.GreenletExit

    def give_up(self) -> None:
        """Ends it, wherever it is."""
        outer = _local.running
        _local.running = self
        try:
            if self._greenlet:
                self._greenlet.throw(greenlet.GreenletExit)
        finally:
            _local.running = outer

    @property
    def has_ended(self) -> bool:
        """Whether it has run to its end, or failed."""
        return self._greenlet.dead

    def place(self) -> str:
        """Where it is, while it is paused, in the words of :meth:`Launch.describe`."""
        return self.launch.describe(self.program, places.of_frame(self._greenlet.gr_frame))

    def describe_wait(self) -> dict[str, Any] | None:
        """Its wait, as an item of `describe_waits`."""
        wait, frame = self.wait, self._greenlet.gr_frame
        if wait is None:
            return None
        place = places.of_frame(frame)
        return {
            "kernel": self.launch.kernel,
            "program": list(self.program),
            "file": place.file if place else None,
            "line": place.line if place else 0,
            "queued": self.launch.queued,
            **wait.describe(),
        }


class _Local(threading.local):
    running: Turn | None = None


_local = _Local()
# Read by threads that describe what this process waits for.
_launches: list[Launch] = []


def running() -> Turn | None:
    """The program that runs on this thread now; None outside of interpreted kernels."""
    return _local.running


def require(primitive: str) -> Turn:
    """The program that runs now. Raises RuntimeError where there is none."""
    if _local.running is None:
        raise RuntimeError(f"{primitive} works in kernels only")
    return _local.running


def wait_for(wait: Wait) -> None:
    """Blocks the running program until `wait` is over; the others go on."""
    turn = require(wait.primitive)
    while not wait.is_over():
        turn.wait = wait
        turn.pause()


def spin() -> None:
    """Lets other programs run: the running one may be in a loop that tries until something happens."""
    if (turn := _local.running) is not None:
        turn.spins = True
        turn.pause()


def describe_waits() -> list[dict[str, Any]]:
    """What the interpreted programs of this process wait for, with the keys of tdist_rt_describe_waits."""
    turns = [turn for launch in list(_launches) for turn in list(launch.in_flight)]
    return [description for turn in turns if (description := turn.describe_wait()) is not None]


class Launch:
    """One launch of an interpreted kernel.

    Attributes:
        kernel: its name.
        grid: extents by axis.
        uses_cube: whether its programs take cube cores.
        in_flight: the programs that have begun and not ended.
        is_over: no program may go on.
        gathered: how many programs are in a barrier of the launch (see waits.BarrierWait).
        passages: how many barriers all of them have passed.
    """

    def __init__(
        self, kernel: str, body: Callable[[], None], grid: Program, cores: int, uses_cube: bool = False
    ) -> None:
        self.kernel = kernel
        self.grid = grid
        self.cores = cores
        self.uses_cube = uses_cube
        self.in_flight: list[Turn] = []
        self.is_over = False
        self.gathered = 0
        self.passages = 0
        self.programs = grid[0] * grid[1] * grid[2]
        self.first_ended: Program | None = None
        self._body = body
        self._started = 0
        self._queue: Iterator[Program] = (
            (x, y, z) for z, y, x in itertools.product(range(grid[2]), range(grid[1]), range(grid[0]))
        )
        self._nap = 0.0
        self._watched = 0
        self._looked = time.monotonic()
        # While no program can go on: what the other ranks are told.
        self._standstill: contextlib.ExitStack | None = None
        self._listed: dict[Wait, tuple[bytes, int | None]] = {}

    @property
    def queued(self) -> int:
        """How many programs have not begun."""
        return self.programs - self._started

    def run(self) -> None:
        """Runs all programs to their ends.

        Raises:
            InterpreterError: a program raised an exception.
            PeerGoneError: programs wait for ranks that have ended.
            DeadlockError: no rank can go on.
        """
        _launches.append(self)
        try:
            self._fill()
            while self.in_flight:
                if self._round():
                    self._nap = 0.0
                else:
                    self._idle()
                self._fill()
        finally:
            self._go_on()
            self.is_over = True
            for turn in self.in_flight:
                turn.give_up()
            _launches.remove(self)

    def describe(self, program: Program, place: places.Place | None) -> str:
        """`kernel K, program (x,y,z), file.py:LINE, rank R`, the words of compiled kernels' errors."""
        text = f"kernel {self.kernel}, program ({','.join(map(str, program))})"
        if place is not None:
            text += f", {place.file}:{place.line}"
        if (current := job.current()) is not None:
            text += f", rank {current.rank}"
        return text

    def _fill(self) -> None:
        for program in itertools.islice(self._queue, self.cores - len(self.in_flight)):
            self._started += 1
            self.in_flight.append(Turn(self, program, self._body))

    def _round(self) -> bool:
        """A turn for each program that can go on. Whether anything has happened."""
        progress = False
        for turn in list(self.in_flight):
            if turn.wait is not None and not turn.wait.is_over():
                continue
            self._go_on()
            turn.resume()
            progress = progress or not turn.spins
            if turn.has_ended:
                self._note_end(turn)
        return progress

    def _note_end(self, turn: Turn) -> None:
        self.in_flight.remove(turn)
        if turn.error is not None:
            raise self._with_place(turn.error, turn.program)
        self.first_ended = self.first_ended or turn.program
        if self.gathered:
            waiting = next(other for other in self.in_flight if other.wait is not None and other.wait.is_barrier)
            raise InterpreterError(f"{self._never_passed(turn.program)}; {waiting.place()}")

    def _with_place(self, error: BaseException, program: Program) -> BaseException:
        """What the launch raises for it. Who ends the process, or leaves a debugger, means no more than that."""
        if not isinstance(error, Exception) or isinstance(error, BdbQuit):
            return error
        place = places.of_traceback(error.__traceback__)
        source = f"\n    {place.text}" if place is not None and place.text else ""
        result = InterpreterError(f"{type(error).__name__}: {error}; {self.describe(program, place)}{source}")
        result.__cause__ = error
        return result

    def _never_passed(self, ended: Program) -> str:
        return (
            "the barrier can never be passed: program "
            f"({','.join(map(str, ended))}) of the same launch has ended without reaching it"
        )

    def check_barrier(self, primitive: str) -> None:
        """Raises RuntimeError where a barrier of all programs cannot be passed."""
        if self.programs > self.cores:
            raise RuntimeError(
                f"{primitive} can never be passed: it waits for all {self.programs} programs of the launch, of which "
                f"only {self.cores} run at a time; launch at most {self.cores}"
            )
        if self.first_ended is not None:
            raise RuntimeError(self._never_passed(self.first_ended))

    def _idle(self) -> None:
        """No program can go on: sleeps until one may, and watches the other ranks."""
        waiting = [turn for turn in self.in_flight if turn.wait is not None]
        if len(waiting) < len(self.in_flight):
            self._nap = min(_LONGEST_NAP_SECONDS, self._nap * 2 or 0.00002)
            time.sleep(self._nap)
            return
        self._watched += 1
        watched = waiting[self._watched % len(waiting)].wait
        assert watched is not None
        if watched.sleep(SLICE_NS if len(waiting) == 1 else _SHORT_SLICE_NS):
            return
        if time.monotonic() - self._looked >= _PEER_LOOK_SECONDS:
            self._looked = time.monotonic()
            self._stand_still(waiting)
            for turn in waiting:
                assert turn.wait is not None
                turn.wait.fail_if_alone(turn.place())

    def _stand_still(self, waiting: list[Turn]) -> None:
        """Tells the other ranks that no program can go on, and what they wait for: once each time that no wait is over.

        Raises:
            DeadlockError: no rank can go on.
        """
        member = next(turn.wait.job for turn in waiting if turn.wait is not None)
        if self._standstill is None:
            self._standstill = contextlib.ExitStack()
            self._standstill.enter_context(member.waiting())
        for turn in waiting:
            wait, description = turn.wait, turn.describe_wait()
            assert wait is not None
            assert description is not None
            record = wait.record(description)
            known, listed = self._listed.get(wait, (b"", None))
            if known != record:
                member.unlist_wait(listed)
                self._listed[wait] = record, member.list_wait(record)
        member.check_deadlock()

    def _go_on(self) -> None:
        if self._standstill is not None:
            for wait, (_, listed) in self._listed.items():
                wait.job.unlist_wait(listed)
            self._listed.clear()
            self._standstill.close()
            self._standstill = None
