"""The simulator's native library, as typed Python calls.

`libtdist_sim.so` (csrc/runtime) has a plain C interface, so that one build serves every Python. This module declares
it once; everybody else calls the methods of :func:`library`.
"""

from __future__ import annotations

import ctypes
import enum
import functools
import json
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ABI_VERSION = 3

LAUNCH = struct.Struct("=QQQQQq8i")
"""tdist_launch: function, addresses of the kernel's name, of the launching file's name, of the arguments (0: they
follow) and of their names, stream, line, grid (x, y, z), cube and vector cores that a program takes, number of
arguments, 0."""


WAIT_RECORD = struct.Struct("=ii3iiqqQqiiiiqqQq40s32s128s200s")
"""tdist_wait_record."""


class NativeError(RuntimeError):
    """A call of the simulator's native library failed. The text says what, where and what to do."""


class HostState(enum.IntEnum):
    """What a rank's host thread does, as far as others may conclude that it will do nothing until its wait is over."""

    RUNS = 0
    """Code that may do anything."""
    SYNCHRONIZES = 1
    """It waits for this rank's own launches."""
    IN_SHMEM = 2
    """A collective call or a wait of the shmem library."""
    IN_HCCL = 3
    """A collective of hccl."""
    EXITED = 4


_RANGE = struct.Struct("=Qq")

_INT, _LONG, _TEXT, _POINTER = ctypes.c_int32, ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p

_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "tdist_rt_abi_version": (_INT, []),
    "tdist_rt_last_error": (_TEXT, []),
    "tdist_rt_segment_bytes": (_LONG, [_LONG]),
    "tdist_rt_attach": (_INT, [_INT, _INT, ctypes.POINTER(_INT), _LONG]),
    "tdist_rt_detach": (_INT, []),
    "tdist_rt_heap_base": (_POINTER, [_INT]),
    "tdist_rt_heap_alloc": (_LONG, [_LONG, _LONG]),
    "tdist_rt_heap_free": (_INT, [_LONG]),
    "tdist_rt_heap_used": (_LONG, []),
    "tdist_rt_check_symmetric": (_INT, [_TEXT, _POINTER, _LONG, _LONG, _INT]),
    "tdist_rt_check_local": (_INT, [_TEXT, _POINTER, _LONG]),
    "tdist_rt_configure": (_INT, [_INT, _INT, _INT]),
    "tdist_rt_launch": (_LONG, [_TEXT]),
    "tdist_rt_stream_end": (_LONG, [_LONG]),
    "tdist_rt_stream_wait": (_INT, [_LONG, _LONG, _LONG]),
    "tdist_rt_synchronize": (_INT, [_LONG]),
    "tdist_rt_unfinished": (_LONG, []),
    "tdist_rt_blocked_ns": (_LONG, []),
    "tdist_rt_memory_in_use": (_INT, [_POINTER, _LONG]),
    "tdist_rt_memory_wait": (_INT, [_LONG, _TEXT, _INT, _LONG]),
    "tdist_rt_mark_wait": (_INT, [_POINTER, _LONG]),
    "tdist_rt_give_up": (_INT, [_LONG]),
    "tdist_rt_stop": (_INT, [_LONG]),
    "tdist_rt_host_state": (_INT, [_INT]),
    "tdist_rt_barrier_arrive": (_LONG, []),
    "tdist_rt_barrier_wait": (_INT, [_LONG, _LONG]),
    "tdist_rt_wait_until": (_INT, [_POINTER, _INT, _INT, _LONG, _LONG]),
    "tdist_rt_strict": (None, [_INT, ctypes.c_uint64]),
    "tdist_rt_put_nbi": (_INT, [_POINTER, _POINTER, _LONG, _INT]),
    "tdist_rt_get_nbi": (_INT, [_POINTER, _POINTER, _LONG, _INT]),
    "tdist_rt_put": (_INT, [_POINTER, _POINTER, _LONG, _INT]),
    "tdist_rt_get": (_INT, [_POINTER, _POINTER, _LONG, _INT]),
    "tdist_rt_signal": (_INT, [_POINTER, _INT, _LONG, _INT, _INT]),
    "tdist_rt_put_on_stream": (_INT, [_POINTER, _POINTER, _LONG, _INT, _LONG]),
    "tdist_rt_get_on_stream": (_INT, [_POINTER, _POINTER, _LONG, _INT, _LONG]),
    "tdist_rt_signal_on_stream": (_INT, [_POINTER, _INT, _LONG, _INT, _INT, _LONG]),
    "tdist_rt_wait_until_on_stream": (_INT, [_POINTER, _INT, _INT, _LONG, _LONG]),
    "tdist_rt_quiet": (_INT, []),
    "tdist_rt_fence": (_INT, []),
    "tdist_rt_trace_begin": (_INT, [_INT]),
    "tdist_rt_trace_end": (None, []),
    "tdist_rt_trace_host": (None, [_TEXT, _LONG, _LONG, _POINTER, _INT, _LONG, _LONG, _INT]),
    "tdist_rt_look": (_INT, [_TEXT, _INT]),
    "tdist_rt_judge": (_INT, [_TEXT]),
    "tdist_rt_verdict": (_LONG, [ctypes.c_char_p, _LONG]),
    "tdist_rt_peer_waits": (_INT, [_INT, ctypes.c_char_p, _LONG]),
    "tdist_rt_peer_host_state": (_INT, [_INT]),
    "tdist_rt_peer_finished": (_INT, [_INT, ctypes.c_char_p, _LONG]),
    "tdist_rt_job_seed": (_LONG, []),
    "tdist_rt_set_count": (_INT, [ctypes.c_uint64, ctypes.c_uint64]),
    "tdist_rt_count_of": (_LONG, [ctypes.c_uint64]),
    "tdist_rt_list_wait": (_POINTER, [_TEXT]),
    "tdist_rt_unlist_wait": (None, [_POINTER]),
    "tdist_rt_describe_waits": (_LONG, [ctypes.c_char_p, _LONG]),
}


def install_directory() -> Path:
    """The folder that holds what CMake built (`lib/`, `bin/`); brought up to date first in an editable install."""
    from triton_dist import _build_info

    return Path(_build_info.__file__).parent


def library_path() -> Path:
    """Path of `libtdist_sim.so`."""
    return install_directory() / "lib" / "libtdist_sim.so"


class Library:
    """The calls of `libtdist_sim.so`. A call that fails raises :class:`NativeError` with the library's own words."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # RTLD_GLOBAL: compiled kernels find the simulator's device functions in this library.
        self._library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, arguments
        version = self._library.tdist_rt_abi_version()
        if version != ABI_VERSION:
            raise NativeError(
                f"{path} has interface version {version}, this package wants {ABI_VERSION}: build again (nox -s build)"
            )
        self.launch = self._library.tdist_rt_launch
        """Gives a launch (a LAUNCH, its slots of 8 bytes behind it) to its stream; returns its position there, or -1:
        see last_error. Called for each launch, so without a method around it."""
        self.unfinished = self._library.tdist_rt_unfinished
        """How many things all streams have to do; -1: a kernel has failed, and nobody has been told."""
        self.blocked_ns = self._library.tdist_rt_blocked_ns
        """For how long no program in flight has got on, also in loops of their own; nanoseconds, 0 while one does."""

    def last_error(self) -> str:
        """The text of this thread's last failed call."""
        text: bytes = self._library.tdist_rt_last_error()
        return text.decode(errors="replace")

    def _check(self, result: int) -> int:
        if result < 0:
            raise NativeError(self.last_error())
        return result

    def segment_bytes(self, heap_bytes: int) -> int:
        """Bytes of the memfd that a PE brings for a symmetric heap of `heap_bytes` bytes."""
        return self._check(self._library.tdist_rt_segment_bytes(heap_bytes))

    def strict(self, on: bool, seed: int) -> None:
        """Choose the strict mode, and its seed, for jobs that this process attaches to from now on."""
        self._library.tdist_rt_strict(on, seed % (1 << 64))

    def attach(self, rank: int, world_size: int, fds: list[int], heap_bytes: int) -> None:
        """Map the segments of all PEs (`fds`, by rank). The descriptors stay the caller's to close."""
        array = (_INT * len(fds))(*fds)
        self._check(self._library.tdist_rt_attach(rank, world_size, array, heap_bytes))

    def detach(self) -> None:
        """Unmap all segments. Views of them must not be used any more."""
        self._check(self._library.tdist_rt_detach())

    def heap_base(self, pe: int) -> int:
        """Address of PE `pe`'s symmetric heap in this process; 0 when there is none."""
        return self._library.tdist_rt_heap_base(pe) or 0

    def heap_alloc(self, bytes_: int, align: int) -> int:
        """Offset in bytes of a new block of the own symmetric heap. Its pages are reserved."""
        return self._check(self._library.tdist_rt_heap_alloc(bytes_, align))

    def heap_free(self, offset: int) -> None:
        """Give back the block at `offset` bytes."""
        self._check(self._library.tdist_rt_heap_free(offset))

    def heap_used(self) -> int:
        """Bytes of the own symmetric heap in live blocks."""
        return self._check(self._library.tdist_rt_heap_used())

    def check_symmetric(self, name: str, address: int, bytes_: int, align: int, pe: int) -> None:
        """Fails unless `bytes_` bytes at `address`, a multiple of `align`, are in one live block, here and on `pe`."""
        self._check(self._library.tdist_rt_check_symmetric(name.encode(), address, bytes_, align, pe))

    def check_local(self, name: str, address: int, bytes_: int) -> None:
        """Fails unless the `bytes_` bytes at `address` are memory of this process."""
        self._check(self._library.tdist_rt_check_local(name.encode(), address, bytes_))

    def configure(self, aic: int, aiv: int, workers: int) -> None:
        """Set the simulated NPU's cube and vector cores, and how many threads run programs (0: chosen)."""
        self._check(self._library.tdist_rt_configure(aic, aiv, workers))

    def stream_end(self, stream: int) -> int:
        """How many things a stream has been given."""
        return self._check(self._library.tdist_rt_stream_end(stream))

    def stream_wait(self, stream: int, position: int, slice_ns: int) -> bool:
        """True once the stream has done so many things; False when the slice is over first."""
        return self._check(self._library.tdist_rt_stream_wait(stream, position, slice_ns)) == 0

    def synchronize(self, slice_ns: int) -> bool:
        """True once all streams have done everything; False when the slice is over first."""
        return self._check(self._library.tdist_rt_synchronize(slice_ns)) == 0

    def memory_in_use(self, address: int, bytes_: int) -> bool:
        """Whether anything unfinished, in whatever stream, was given the memory."""
        return self._check(self._library.tdist_rt_memory_in_use(address, bytes_)) == 1

    def memory_wait(self, stream: int, address: int, bytes_: int, slice_ns: int) -> bool:
        """True once nothing before the end of the stream uses the memory; False when the slice is over first."""
        return self._check(self._library.tdist_rt_memory_wait(stream, _RANGE.pack(address, bytes_), 1, slice_ns)) == 0

    def mark_wait(self, mark: int, slice_ns: int) -> bool:
        """True once the mark's stream has come to it; False when the slice is over first."""
        return self._check(self._library.tdist_rt_mark_wait(mark, slice_ns)) == 0

    def give_up(self, slice_ns: int) -> bool:
        """Forget everything unfinished; False when a program still runs at the end of the slice."""
        return self._check(self._library.tdist_rt_give_up(slice_ns)) == 0

    def stop(self, slice_ns: int) -> bool:
        """As give_up, and end the library's threads; the next launch starts new ones."""
        return self._check(self._library.tdist_rt_stop(slice_ns)) == 0

    def host_state(self, state: HostState) -> HostState:
        """Tell all ranks what this one's host does; returns what it did before."""
        return HostState(self._check(self._library.tdist_rt_host_state(state)))

    def functions(self, *names: str) -> Any:
        """Addresses of functions of the library, as an array for native code."""
        return (_POINTER * len(names))(
            *(ctypes.cast(getattr(self._library, f"tdist_rt_{name}"), _POINTER).value for name in names)
        )

    def barrier_arrive(self) -> int:
        """Arrive at the host barrier of all PEs; returns the ticket for :meth:`barrier_wait`."""
        return self._check(self._library.tdist_rt_barrier_arrive())

    def barrier_wait(self, ticket: int, slice_ns: int) -> bool:
        """True once all PEs have arrived; False when `slice_ns` nanoseconds are over first."""
        return self._check(self._library.tdist_rt_barrier_wait(ticket, slice_ns)) == 0

    def wait_until(self, address: int, width: int, compare: int, value: int, slice_ns: int) -> bool:
        """True once the word of `width` bytes at `address` compares with `value`; False when the slice is over."""
        return self._check(self._library.tdist_rt_wait_until(address, width, compare, value, slice_ns)) == 0

    def put(self, destination: int, source: int, bytes_: int, pe: int, nbi: bool = False) -> None:
        """Copy `bytes_` bytes from local `source` to PE `pe`'s object at the local symmetric address `destination`.

        `nbi`: in the strict mode it is complete at the next quiet, fence or barrier only.
        """
        put = self._library.tdist_rt_put_nbi if nbi else self._library.tdist_rt_put
        self._check(put(destination, source, bytes_, pe))

    def get(self, destination: int, source: int, bytes_: int, pe: int, nbi: bool = False) -> None:
        """Copy `bytes_` bytes from PE `pe`'s object at the local symmetric address `source` to local `destination`.

        `nbi`: in the strict mode it is complete at the next quiet, fence or barrier only.
        """
        get = self._library.tdist_rt_get_nbi if nbi else self._library.tdist_rt_get
        self._check(get(destination, source, bytes_, pe))

    def signal(self, address: int, width: int, value: int, operation: int, pe: int) -> None:
        """Set (0) or add (1) `value` on PE `pe`'s signal word of `width` bytes (4 or 8)."""
        self._check(self._library.tdist_rt_signal(address, width, value, operation, pe))

    def put_on_stream(self, destination: int, source: int, bytes_: int, pe: int, stream: int) -> None:
        """As :meth:`put`, when the stream comes to it."""
        self._check(self._library.tdist_rt_put_on_stream(destination, source, bytes_, pe, stream))

    def get_on_stream(self, destination: int, source: int, bytes_: int, pe: int, stream: int) -> None:
        """As :meth:`get`, when the stream comes to it."""
        self._check(self._library.tdist_rt_get_on_stream(destination, source, bytes_, pe, stream))

    def signal_on_stream(self, address: int, width: int, value: int, operation: int, pe: int, stream: int) -> None:
        """As :meth:`signal`, when the stream comes to it."""
        self._check(self._library.tdist_rt_signal_on_stream(address, width, value, operation, pe, stream))

    def wait_until_on_stream(self, address: int, width: int, compare: int, value: int, stream: int) -> None:
        """Hold the stream until the word of `width` bytes at `address` compares with `value`."""
        self._check(self._library.tdist_rt_wait_until_on_stream(address, width, compare, value, stream))

    def quiet(self) -> None:
        """Wait until every put of this PE is complete."""
        self._check(self._library.tdist_rt_quiet())

    def fence(self) -> None:
        """Order the puts of this PE to each PE."""
        self._check(self._library.tdist_rt_fence())

    def trace_begin(self, fd: int) -> None:
        """From now on, what launches do goes into file `fd`, which stays the caller's to close."""
        self._check(self._library.tdist_rt_trace_begin(fd))

    def trace_end(self) -> None:
        """Launches that begin from now on are not traced."""
        self._library.tdist_rt_trace_end()

    def trace_host(
        self, name: str, begin_ns: int, address: int = 0, pe: int = -1, bytes_: int = 0, value: int = 0, op: int = -1
    ) -> None:
        """A call of host code, from `begin_ns` (time.monotonic_ns) until now, goes into the trace if there is one."""
        now = time.monotonic_ns()
        self._library.tdist_rt_trace_host(name.encode(), begin_ns, now, address, pe, bytes_, value, op)

    def look(self, exited: bytes) -> bool:
        """Whether no rank of the job can go on. `exited` has a byte for each rank: not 0 where its host has ended.

        To be called each time that a wait of the host, in a state other than RUNS, finds its end not there.
        """
        return self._check(self._library.tdist_rt_look(exited, len(exited))) == 1

    def judge(self, text: str) -> None:
        """Make `text` what all ranks are told; the first one stays."""
        self._check(self._library.tdist_rt_judge(text.encode()))

    def verdict(self) -> str:
        """What all ranks are told; "" as long as there is nothing."""
        return self._text(self._library.tdist_rt_verdict)

    def peer_host_state(self, pe: int) -> HostState:
        """What the host of PE `pe` does."""
        return HostState(self._check(self._library.tdist_rt_peer_host_state(pe)))

    def peer_waits(self, pe: int) -> list[dict[str, Any]]:
        """What :meth:`describe_waits` gives on PE `pe`."""
        return _waits(self._text(functools.partial(self._library.tdist_rt_peer_waits, pe)))

    def peer_finished(self, pe: int) -> dict[str, Any] | None:
        """The launch of PE `pe` that has ended last: its `kernel`, and `seconds` since then."""
        finished: dict[str, Any] | None = json.loads(
            self._text(functools.partial(self._library.tdist_rt_peer_finished, pe))
        )
        return finished

    def job_seed(self) -> int:
        """The seed of the dice of the job that this process is in."""
        return self._check(self._library.tdist_rt_job_seed())

    def set_count(self, key: int, count: int) -> None:
        """Tell all ranks a count of this one, under a key; nothing happens where there is no room left."""
        self._library.tdist_rt_set_count(key, count)

    def count_of(self, key: int) -> int:
        """The count that some rank tells under a key; -1 where none does, -2 where one may have had no room for it."""
        return int(self._library.tdist_rt_count_of(key))

    def list_wait(self, record: bytes) -> int | None:
        """Put a wait, a WAIT_RECORD, into the table that all ranks read; for :meth:`unlist_wait`. None: it is full."""
        listed: int | None = self._library.tdist_rt_list_wait(record)
        return listed

    def unlist_wait(self, listed: int | None) -> None:
        """Take a wait out of the table again."""
        self._library.tdist_rt_unlist_wait(listed)

    def describe_waits(self) -> list[dict[str, Any]]:
        """What this process's programs and host calls wait for now. May be called from any thread."""
        return _waits(self._text(self._library.tdist_rt_describe_waits))

    def _text(self, function: Callable[[Any, int], int]) -> str:
        """The text that a function writes, which says how much room it needs."""
        capacity = 1 << 16
        while True:
            buffer = ctypes.create_string_buffer(capacity)
            needed = self._check(function(buffer, capacity))
            if needed <= capacity:
                return buffer.value.decode(errors="replace")
            capacity = needed


def _waits(text: str) -> list[dict[str, Any]]:
    waits: list[dict[str, Any]] = json.loads(text or "[]")
    return waits


@functools.cache
def library() -> Library:
    """The loaded library. Raises NativeError, with the way to mend it, when it is missing or does not fit."""
    try:
        path = library_path()
        return Library(path)
    except (OSError, ImportError, AttributeError) as error:
        raise NativeError(f"the simulator's library cannot be loaded ({error}): build it with nox -s build") from error
