"""This process's membership in an aclshmem job: its symmetric heap, and what it does together with its peers.

Every call that waits does so in slices, so that Ctrl-C works and peers are watched: nobody waits for a rank that has
gone. The host API (shims/shmem) and the kernel launcher are its users.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import mmap
import multiprocessing.util
import os
import secrets
import sys
import time
import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from triton_dist import env
from triton_dist.runtime import deadlock, launches, native, rendezvous, shared_calls
from triton_dist.runtime.deadlock import DeadlockError
from triton_dist.runtime.heap import SymmetricHeap
from triton_dist.runtime.native import HostState
from triton_dist.runtime.other_threads import OtherThreads
from triton_dist.runtime.peers import Peers
from triton_dist.runtime.status_page import CollectiveCall, State, StatusPage
from triton_dist.trace import recording

logger = logging.getLogger("aclshmem.heap")

# How long native code waits before Python looks at signals and at the other ranks.
SLICE_NS = 50_000_000

# Programs of this rank may still signal each other when all peers have gone; after this long, nobody will.
_ALONE_SECONDS = 1.0

# Each rank's heap begins with a word for every other rank, 64 bytes apart: how many team barriers that one has reached
# together with this one. Behind them are as many for the barriers of streams.
_WORD_STRIDE = 64
_WORD_BYTES = 8
_NE = 1
_GE = 3
_SET = 0


_HOST_WORDS = {
    HostState.SYNCHRONIZES: "waits for its own kernels",
    HostState.IN_SHMEM: "is in a call of aclshmem",
    HostState.IN_HCCL: "is in a collective of hccl",
    HostState.EXITED: "has exited",
}


class PeerGoneError(RuntimeError):
    """This rank waits for ranks that are not there any more. The text says which, and how they ended."""


class Job:
    """A rank's place in a job, from :func:`attach` to :meth:`finalize`.

    Attributes:
        rank: number of this rank, from 0.
        world_size: how many ranks the job has.
        heap_bytes: symmetric heap of each rank that the user may allocate, in bytes.
        endpoint: where the ranks met, in words.
        heap: the symmetric heap; blocks of it are taken and given back by :meth:`alloc` and :meth:`free`.
    """

    def __init__(self, meeting: rendezvous.Meeting, call: rendezvous.Call) -> None:
        """Maps the segments of `meeting` and takes over its pidfds."""
        self.rank = call.rank
        self.world_size = call.world_size
        self.heap_bytes = call.heap_bytes
        self.endpoint = str(call.endpoint)
        self._library = native.library()
        self._sequence = 0
        self._alone_since: float | None = None
        self._stuck_since: float | None = None
        self._other_threads = OtherThreads()
        self._reached = [0] * call.world_size
        self._reached_on_streams = [0] * call.world_size
        self._references = 0
        self._status = StatusPage(meeting.status, call.rank, call.world_size)
        # Kept for as long as the job lasts: nobody else can listen where it has met.
        self._claim = meeting.claim
        self._peers = Peers(call.rank, meeting.pids, meeting.pidfds, self._status)
        total = call.heap_bytes + _private_bytes(call.world_size)
        try:
            self._library.attach(call.rank, call.world_size, meeting.segments, total)
            self._private = self._library.heap_alloc(2 * _WORD_STRIDE * call.world_size, _WORD_STRIDE)
        except native.NativeError as error:
            self._status.announce(State.EXITED, f"{type(error).__name__}: {error}")
            with contextlib.suppress(native.NativeError):
                self._library.detach()
            raise
        self.heap = SymmetricHeap(self._library, call.rank, call.world_size, total)
        ctypes.memset(self._word(0), 0, 2 * _WORD_STRIDE * call.world_size)
        shared_calls.publish_in(self._library)
        self._recording = recording.begin(call.rank, call.world_size, job=meeting.pids[0])
        self.heap.is_traced = self._recording is not None

    # ------------------------------------------------------------------------------------------- peers

    def check_peers(self, may_be_stuck: bool = True) -> None:
        """Raises PeerGoneError when this process waits for something that no peer can give any more.

        To be called now and then while kernels run or wait. A barrier of kernels fails as soon as one of the ranks
        that it waits for has gone; other waits fail when all other ranks have, since any of them might signal.
        `may_be_stuck`: nothing says that what this rank waits for will come.
        """
        self._peers.look()
        self.check_deadlock(may_be_stuck)
        if not self._peers.gone:
            return
        if self._alone_since is None and self._peers.all_gone():
            self._alone_since = time.monotonic()
        alone = self._alone_since is not None and time.monotonic() - self._alone_since >= _ALONE_SECONDS
        for wait in self._library.describe_waits():
            missing = self._peers.missing(wait.get("missing_pes") or [])
            # Where nobody else can go on either, a look at all ranks says more, and comes sooner.
            if missing and wait["kernel"] and wait["seconds"] < _ALONE_SECONDS:
                continue
            if not missing and alone and wait["seconds"] >= _ALONE_SECONDS:
                missing = sorted(self._peers.gone)
            if missing:
                raise PeerGoneError(
                    f"rank {self.rank} waits in {_describe_wait(wait)}, but {self._peers.describe(missing)}"
                )

    def check_deadlock(self, may_be_stuck: bool = True) -> None:
        """Raises DeadlockError once it is certain that no rank can go on, on every rank with the same text.

        To be called by a wait in a host state other than RUNS, each time that its end is not there, and once each time;
        with `may_be_stuck=False` where it will come by itself, or has not been looked for since the last call.
        """
        text = self._library.verdict()
        if not text and may_be_stuck and self._is_stuck():
            ranks = [self._state_of(rank) for rank in range(self.world_size)]
            if self._is_to_be_judged(ranks):
                self._library.judge(deadlock.verdict(ranks, self._replay()))
                text = self._library.verdict()
        if text:
            launches.give_up()
            raise DeadlockError(text)

    def _is_stuck(self) -> bool:
        """Whether it is certain that no rank can go on."""
        if self._other_threads.may_act() or not self._library.look(self._peers.have_exited(self.world_size)):
            self._stuck_since = None
            return False
        return True

    def _is_to_be_judged(self, ranks: list[deadlock.RankState]) -> bool:
        """Whether it is the table that says most.

        Where ranks have gone and only hosts wait for them, PeerGoneError says how they went; but it does not come where
        a host waits for any of several ranks, and some are left.
        """
        if not self._peers.gone or any(wait["kernel"] for state in ranks for wait in state.waits):
            return True
        self._stuck_since = self._stuck_since or time.monotonic()
        return time.monotonic() - self._stuck_since >= _ALONE_SECONDS

    def _state_of(self, rank: int) -> deadlock.RankState:
        left = self._peers.gone.get(rank)
        host = _HOST_WORDS.get(self._library.peer_host_state(rank), "runs") if left is None else left
        waits, finished = self._library.peer_waits(rank), self._library.peer_finished(rank)
        return deadlock.RankState(rank, waits, host, left is not None, finished)

    def _replay(self) -> str:
        """The variables that make the choices of this job again; "" where there are none."""
        if not env.TRITON_DIST_SIM_STRICT.get():
            return ""
        return f"{env.TRITON_DIST_SIM_STRICT.name}=1 {env.TRITON_DIST_SIM_SEED.name}={self._library.job_seed()}"

    def _wait(self, what: str, ready: Callable[[int], bool], needed: Iterable[int] | None) -> None:
        """Waits in slices until `ready(slice_ns)`.

        `needed` are the ranks without which it cannot become ready; None: any other rank may make it so.
        """
        with self.waiting():
            while not ready(SLICE_NS):
                self.fail_if_alone(what, ready, needed)

    def list_wait(self, record: bytes) -> int | None:
        """Has all ranks see a wait, a native.WAIT_RECORD; for :meth:`unlist_wait`."""
        return self._library.list_wait(record)

    def unlist_wait(self, listed: int | None) -> None:
        """Takes back what :meth:`list_wait` has done."""
        self._library.unlist_wait(listed)

    def waiting(self) -> contextlib.AbstractContextManager[None]:
        """For a wait in several steps: in between, this process does nothing that others wait for."""
        return launches.host_state(HostState.IN_SHMEM)

    def fail_if_alone(
        self, what: str, ready: Callable[[int], bool], needed: Iterable[int] | None, may_be_stuck: bool = True
    ) -> None:
        """Raises PeerGoneError if `what`, which is not `ready(0)`, waits for ranks that have ended.

        `needed` are the ranks without which it cannot become ready; None: any other rank may make it so. For
        `may_be_stuck` see :meth:`check_deadlock`.
        """
        self._peers.look()
        self.check_deadlock(may_be_stuck)
        missing = self._peers.missing(needed)
        # The last thing that a rank did may have been what this one waits for.
        if missing and not ready(0):
            raise PeerGoneError(f"rank {self.rank} waits in {what}, but {self._peers.describe(missing)}")

    # -------------------------------------------------------------------------------- collective calls

    def barrier(self, name: str = "aclshmem_barrier_all") -> None:
        """Waits until the hosts of all ranks have called it, and what they had launched has ended or waits itself.

        Raises:
            PeerGoneError: a rank has ended or finalized.
            RuntimeError: a rank makes another collective call, or a kernel has failed.
        """
        launches.settle()
        self._together(CollectiveCall(name))

    def team_barrier(self, members: list[int], name: str = "aclshmem_barrier") -> None:
        """Waits until the hosts of all `members` (ranks, this one among them) have called it.

        Any two ranks count the barriers that they are both in, so teams need no numbers that all ranks agree on.

        Raises:
            PeerGoneError: a member has ended or finalized.
        """
        launches.settle()
        others = [rank for rank in members if rank != self.rank]
        self._library.quiet()
        for rank in others:
            self._reached[rank] += 1
            self._library.signal(self._word(self.rank), _WORD_BYTES, self._reached[rank], _SET, rank)
        for rank in others:
            self.wait_until(self._word(rank), _WORD_BYTES, _GE, self._reached[rank], name=name, needed=others)

    def barrier_on_stream(self, members: list[int], stream: int) -> None:
        """Has a stream wait until streams of all `members` (ranks, this one among them) have come to theirs."""
        loaded = launches.library()
        others = [rank for rank in members if rank != self.rank]
        for rank in others:
            self._reached_on_streams[rank] += 1
            reached = self._reached_on_streams[rank]
            loaded.signal_on_stream(self._stream_word(self.rank), _WORD_BYTES, reached, _SET, rank, stream)
        for rank in others:
            word, reached = self._stream_word(rank), self._reached_on_streams[rank]
            loaded.wait_until_on_stream(word, _WORD_BYTES, _GE, reached, stream)

    def _word(self, rank: int) -> int:
        return self.heap.base + self._private + rank * _WORD_STRIDE

    def _stream_word(self, rank: int) -> int:
        return self._word(self.world_size + rank)

    def alloc(self, bytes_: int, align: int = 64, name: str = "aclshmem_malloc", clear: bool = False) -> int:
        """Takes a block of the symmetric heap, on all ranks at the same offset; returns its address here.

        Collective, with a barrier behind it. The content is all zero with `clear`, else not defined.

        Raises:
            ValueError: size or alignment is not possible.
            RuntimeError: the heap has no room (says how much was asked and is free), or ranks make other calls.
        """
        if bytes_ <= 0:
            raise ValueError(f"{name}: size is {bytes_} bytes: it must be at least 1")
        if align <= 0 or align & (align - 1):
            raise ValueError(f"{name}: alignment is {align} bytes: it must be a power of two")
        try:
            offset = self.heap.take(bytes_, align)
        except native.NativeError as error:
            # The others must not wait for this rank, and are told by its offset.
            with contextlib.suppress(RuntimeError):
                self._together(CollectiveCall(name, bytes_, align, offset=-1))
            logger.error("%s: %s", name, error)
            raise RuntimeError(f"{name}: {error}") from None
        address = self.heap.base + offset
        if clear:
            ctypes.memset(address, 0, bytes_)
        try:
            self._together(CollectiveCall(name, bytes_, align, offset))
        except BaseException:
            self.heap.give_back(offset)
            raise
        logger.debug("%s: rank %d has %d bytes at offset %d of its heap", name, self.rank, bytes_, offset)
        return address

    def free(self, address: int, name: str = "aclshmem_free") -> None:
        """Gives back the block at `address`, once no launch uses it any more. Collective, with a barrier before it.

        Raises:
            ValueError: no block begins there (never allocated, freed already, or of another job).
            RuntimeError: ranks make other calls, or a kernel has failed.
        """
        offset = self.heap.offset_of_block(address, name)
        launches.wait_for_users(address, 1)
        self._together(CollectiveCall(name, offset=offset))
        self.heap.give_back(offset)
        logger.debug("%s: rank %d has given back offset %d of its heap", name, self.rank, offset)

    def gather(self, name: str, values: tuple[int, int, int], timeout: float) -> list[tuple[int, int, int]]:
        """What each rank gives, by rank: three integers of 64 bits, signed. All ranks call it with one `name`.

        Raises:
            PeerGoneError: a rank has ended or finalized.
            TimeoutError: ranks have not called it within `timeout` seconds; this one cannot go on with the job.
            RuntimeError: a rank makes another collective call.
        """
        own = CollectiveCall(name, *values)
        wait = self.arrive(own)
        deadline = time.monotonic() + timeout
        while not wait.have_all_come(SLICE_NS):
            wait.fail_if_alone(name)
            if time.monotonic() >= deadline:
                late = [rank for rank, call in enumerate(wait.calls()) if call is None]
                raise TimeoutError(f"{name}: ranks {late} have not come within {timeout:g} s")
        gathered = []
        for rank, call in enumerate(wait.calls()):
            if call is None or call.name != name:
                raise RuntimeError(self._describe_difference(own, rank, call))
            gathered.append((call.bytes, call.align, call.offset))
        return gathered

    def _together(self, call: CollectiveCall) -> None:
        """A barrier of all ranks, who must all make this call."""
        begin = time.monotonic_ns()
        wait = self.arrive(call)
        with launches.host_state(HostState.IN_SHMEM):
            while not wait.is_over(SLICE_NS):
                wait.fail_if_alone(call.name)
        if self.heap.is_traced:
            self._library.trace_host(call.name, begin)

    def arrive(self, call: CollectiveCall) -> CollectiveWait:
        """Arrives at the barrier of a collective call, and returns at once."""
        self._sequence += 1
        self._status.post(self._sequence, call)
        return CollectiveWait(self, call, self._sequence, self._library.barrier_arrive())

    def is_passed(self, ticket: int, slice_ns: int) -> bool:
        """Whether all ranks have arrived at the barrier of `ticket`, after at most `slice_ns` nanoseconds."""
        return self._library.barrier_wait(ticket, slice_ns)

    def posted(self, sequence: int) -> list[CollectiveCall | None]:
        """What each rank has posted as its `sequence`-th collective call; None for a rank that has not come to it."""
        return [self._status.posted(rank, sequence) for rank in range(self.world_size)]

    def posted_ahead(self) -> list[CollectiveCall | None]:
        """The next collective call of each rank, from now on; None for a rank that has not come to it yet."""
        return self.posted(self._sequence + 1)

    def check_same_call(self, call: CollectiveCall, sequence: int) -> None:
        """Raises RuntimeError unless all ranks have posted `call` as their `sequence`-th."""
        for rank, theirs in enumerate(self.posted(sequence)):
            if theirs != call:
                raise RuntimeError(self._describe_difference(call, rank, theirs))

    def _describe_difference(self, call: CollectiveCall, rank: int, theirs: CollectiveCall | None) -> str:
        if theirs is not None and theirs.offset < 0:
            return f"{call.name}: rank {rank} has no room for {theirs.bytes} bytes in its symmetric heap"
        return (
            f"the ranks make different collective calls: rank {self.rank} is in {call}, rank {rank} in {theirs}. "
            "All ranks must make the same calls, with the same sizes, in the same order"
        )

    # ------------------------------------------------------------------------------------------ waits

    def wait_until(
        self, address: int, width: int, compare: int, value: int, name: str, needed: list[int] | None = None
    ) -> None:
        """Waits until the signed word of `width` bytes at symmetric `address` compares with `value`.

        Raises:
            ValueError: the address is not possible.
            PeerGoneError: the ranks that could make it so have ended (`needed`: one of these has; else all others).
        """
        self.heap.check_range(address, width, self.rank, name, align=width)
        begin = time.monotonic_ns()
        self._wait(name, lambda ns: self._library.wait_until(address, width, compare, value, ns), needed)
        if self.heap.is_traced:
            self._library.trace_host(name, begin, address)

    def poll_word(self, address: int, width: int, compare: int, value: int, slice_ns: int) -> bool:
        """Whether the word compares as in :meth:`wait_until`, after at most `slice_ns` nanoseconds."""
        return self._library.wait_until(address, width, compare, value, slice_ns)

    def wait_until_on_stream(self, address: int, width: int, compare: int, value: int, name: str, stream: int) -> None:
        """As :meth:`wait_until`, but a stream waits, and the host goes on.

        Raises:
            ValueError: the address is not possible.
        """
        self.heap.check_range(address, width, self.rank, name, align=width)
        launches.library().wait_until_on_stream(address, width, compare, value, stream)

    def wait_for_change(self, address: int, width: int, seen: int, name: str, slice_ns: int = SLICE_NS) -> None:
        """Waits until the word at `address` is no longer `seen` (signed), or for `slice_ns` nanoseconds.

        Raises:
            PeerGoneError: all other ranks have ended.
        """

        def ready(ns: int) -> bool:
            return self._library.wait_until(address, width, _NE, seen, ns)

        with self.waiting():
            if not ready(slice_ns):
                self.fail_if_alone(name, ready, None)

    # ------------------------------------------------------------------------------------------- end

    def reference(self) -> object:
        """An object that keeps the heaps mapped for as long as it lives; tensors in symmetric memory hold one.

        Using such a tensor after :meth:`finalize` is an error that must not end the process.
        """
        reference = _Reference()
        self._references += 1
        finalizer = weakref.finalize(reference, self._drop_reference)
        finalizer.atexit = False
        return reference

    def _drop_reference(self) -> None:
        self._references -= 1
        _unmap_if_unused()

    def is_referenced(self) -> bool:
        """Whether an object of :meth:`reference` lives."""
        return self._references > 0

    def finalize(self) -> None:
        """Waits for this rank's launches, then leaves the job together with all ranks. Warns where some are gone.

        Raises:
            RuntimeError: a kernel has failed, or another rank makes another collective call; this one has left all
                the same.
        """
        global _current, _mapped
        try:
            launches.synchronize()
            self._together(CollectiveCall("aclshmem_finalize"))
        except PeerGoneError as error:
            warnings.warn(f"aclshmem_finalize did not wait for all ranks: {error}", RuntimeWarning, stacklevel=3)
        finally:
            launches.give_up()
            self._end_recording()
            self._status.announce(State.FINALIZED)
            self._close()
            _current, _mapped = None, self
            _unmap_if_unused()

    def _close(self) -> None:
        launches.watch(None)
        shared_calls.publish_in(None)
        if self._claim is not None:
            self._claim.close()
        self._peers.close()
        self._status.close()

    def abandon(self, reason: str) -> None:
        """Leaves the job without waiting for anybody, and tells the peers why; `reason` may be "".

        For a process that lives on but cannot go on with the job.
        """
        global _current, _mapped
        self.announce_exit(reason)
        launches.give_up()
        self._close()
        _current, _mapped = None, self
        _unmap_if_unused()

    def announce_exit(self, reason: str) -> None:
        """Tells the peers that this rank goes without a finalize, and why."""
        self._end_recording()
        self._status.announce(State.EXITED, reason)

    def show_profile(self) -> bool:
        """Prints the cycles counted so far, if SHMEM_CYCLE_PROF_PE names this rank; whether it does."""
        return self._recording is not None and self._recording.show_profile()

    def _end_recording(self) -> None:
        if self._recording is not None:
            self._recording.end()

    def forget(self) -> None:
        """Gives up the membership without a word: this is a fork of the rank, not the rank."""
        if self._recording is not None:
            self._recording.forget()
        with contextlib.suppress(OSError):
            self._close()


class CollectiveWait:
    """A collective call at whose barrier this rank has arrived."""

    def __init__(self, job: Job, call: CollectiveCall, sequence: int, ticket: int) -> None:
        self._job = job
        self._call = call
        self._sequence = sequence
        self._ticket = ticket

    @property
    def ticket(self) -> int:
        """Which of the job's barriers it is."""
        return self._ticket

    def is_over(self, slice_ns: int) -> bool:
        """Whether all ranks have arrived, after at most `slice_ns` nanoseconds.

        Raises:
            RuntimeError: a rank makes another collective call.
        """
        if not self.have_all_come(slice_ns):
            return False
        self._job.check_same_call(self._call, self._sequence)
        return True

    def have_all_come(self, slice_ns: int) -> bool:
        """As `is_over`, whatever calls the other ranks make."""
        return self._job.is_passed(self._ticket, slice_ns)

    def calls(self) -> list[CollectiveCall | None]:
        """The calls that the ranks make, by rank; None for one that has not arrived."""
        return self._job.posted(self._sequence)

    def fail_if_alone(self, what: str, may_be_stuck: bool = True) -> None:
        """Raises PeerGoneError, in which `what` waits, if a rank that has not arrived has ended."""
        everyone = range(self._job.world_size)
        self._job.fail_if_alone(what, lambda ns: self._job.is_passed(self._ticket, ns), everyone, may_be_stuck)


class _Reference:
    """Stands for something that lies in the heaps of a job."""


def _describe_wait(wait: dict[str, Any]) -> str:
    """A wait of `describe_waits`, in words."""
    where = f" at {wait['file']}:{wait['line']}" if wait["file"] else ""
    return f"{wait['primitive']} of {wait['kernel'] or 'the host'}{where}"


_current: Job | None = None
# The last job that this process has left, while its heaps are still mapped.
_mapped: Job | None = None
_has_left = False


def _unmap_if_unused() -> None:
    global _mapped, _has_left
    if _mapped is not None:
        _has_left = True
        if not _mapped.is_referenced():
            _mapped = None
            native.library().detach()


def current() -> Job | None:
    """The job that this process is in, or None."""
    return _current


def require(name: str) -> Job:
    """The job that this process is in, for the function `name` that needs one.

    Raises:
        RuntimeError: shmem has not been initialised in this process, or has been finalized.
    """
    if _current is not None:
        return _current
    if _has_left:
        raise RuntimeError(f"{name} was called after aclshmem_finalize: initialise shmem again first")
    raise RuntimeError(f"{name} needs shmem to be initialised: call aclshmem_init first")


def attach(endpoint: rendezvous.Endpoint, rank: int, world_size: int, heap_bytes: int, timeout: float) -> Job:
    """Joins the job that meets at `endpoint`: waits for all ranks, at most `timeout` seconds, and maps their heaps.

    `heap_bytes` of each rank can be allocated. Only pages that are used cost memory.

    Raises:
        RuntimeError: this process is in a job already.
        ValueError: rank, world size or heap size is not possible.
        RendezvousError: the ranks could not meet (a subclass of RuntimeError).
    """
    global _current, _mapped
    if _current is not None:
        raise RuntimeError(
            f"this process is already rank {_current.rank} of the job at {_current.endpoint}: "
            "call aclshmem_finalize before it joins another"
        )
    if heap_bytes <= 0:
        raise ValueError(f"local_mem_size is {heap_bytes} bytes: it must be at least 1")
    library = native.library()
    if _mapped is not None:
        _mapped = None
        library.detach()
    _choose_strictness(library, rank)
    segment_bytes = library.segment_bytes(heap_bytes + _private_bytes(max(world_size, 1)))
    call = rendezvous.Call(endpoint, rank, world_size, heap_bytes, segment_bytes, timeout)
    meeting = rendezvous.meet(call)
    try:
        job = Job(meeting, call)
    except BaseException:
        meeting.close()
        raise
    meeting.close_memory()
    _current = job
    launches.watch(job.check_peers)
    # Also run where multiprocessing ends a child without the interpreter's own exit handlers.
    multiprocessing.util.Finalize(None, _announce_exit_at_exit, exitpriority=0)
    try:
        job.barrier("aclshmem_init")
    except BaseException as error:
        job.abandon(f"{type(error).__name__}: {error}")
        raise
    return job


def _choose_strictness(library: native.Library, rank: int) -> None:
    """Makes the process strict where TRITON_DIST_SIM_STRICT asks for it; rank 0's seed is that of the job."""
    strict = env.TRITON_DIST_SIM_STRICT.get()
    seed = env.TRITON_DIST_SIM_SEED.get()
    if seed is None:
        seed = secrets.randbelow(1 << 20)
        if strict and rank == 0:
            print(f"triton_dist: strict mode; TRITON_DIST_SIM_SEED={seed} makes the same choices", file=sys.stderr)
    library.strict(strict, seed)


def _private_bytes(world_size: int) -> int:
    """What the job itself needs of the heap, in bytes, in whole pages."""
    page = mmap.PAGESIZE
    return -(-2 * _WORD_STRIDE * world_size // page) * page


def announce_exit(reason: str = "") -> None:
    """Tells the peers of the current job, if there is one, that this process takes no further part in it.

    For a process that is about to end, or that waits for its end. The heaps stay mapped: others may still use them.
    """
    if _current is not None:
        _current.announce_exit(reason)


def _announce_exit_at_exit() -> None:
    announce_exit(_describe_exit())


def _describe_exit() -> str:
    """The error that ends this interpreter, or ""."""
    error = sys.exc_info()[1] or getattr(sys, "last_value", None)
    if isinstance(error, SystemExit) and error.__context__ is not None:
        error = error.__context__
    return f"{type(error).__name__}: {error}" if error is not None else ""


def _forget_in_child() -> None:
    global _current, _mapped
    if _current is not None:
        _current.forget()
        _current, _mapped = None, _current


os.register_at_fork(after_in_child=_forget_in_child)
