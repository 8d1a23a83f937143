"""The simulator's native library, as typed Python calls.

`libtdist_sim.so` (csrc/runtime) has a plain C interface, so that one build serves every Python. This module declares
it once; everybody else calls the methods of :func:`library`.
"""

from __future__ import annotations

import ctypes
import functools
import json
from pathlib import Path
from typing import Any

ABI_VERSION = 1

KERNEL_FUNCTION = ctypes.c_void_p
GRID = ctypes.c_int32 * 3


class NativeError(RuntimeError):
    """A call of the simulator's native library failed. The text says what, where and what to do."""


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
    "tdist_rt_launch_begin": (_POINTER, [_POINTER, _TEXT, ctypes.POINTER(_INT), _INT, _TEXT, _INT]),
    "tdist_rt_launch_run": (_INT, [_POINTER, _LONG]),
    "tdist_rt_launch_end": (None, [_POINTER]),
    "tdist_rt_barrier_arrive": (_LONG, []),
    "tdist_rt_barrier_wait": (_INT, [_LONG, _LONG]),
    "tdist_rt_wait_until": (_INT, [_POINTER, _INT, _INT, _LONG, _LONG]),
    "tdist_rt_put": (_INT, [_POINTER, _POINTER, _LONG, _INT]),
    "tdist_rt_get": (_INT, [_POINTER, _POINTER, _LONG, _INT]),
    "tdist_rt_signal": (_INT, [_POINTER, _INT, _LONG, _INT, _INT]),
    "tdist_rt_quiet": (_INT, []),
    "tdist_rt_fence": (_INT, []),
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
        self.launch_run = self._library.tdist_rt_launch_run
        self.launch_end = self._library.tdist_rt_launch_end

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

    def launch_begin(self, function: int, name: str, grid: Any, cores: int, arguments: bytes, count: int) -> int:
        """Queue a launch of `function` over `grid` (a GRID) and return its handle.

        `arguments` holds `count` slots of 8 bytes, `cores` is the number of programs in flight at once.
        """
        handle: int | None = self._library.tdist_rt_launch_begin(function, name.encode(), grid, cores, arguments, count)
        if not handle:
            raise NativeError(self.last_error())
        return handle

    def barrier_arrive(self) -> int:
        """Arrive at the host barrier of all PEs; returns the ticket for :meth:`barrier_wait`."""
        return self._check(self._library.tdist_rt_barrier_arrive())

    def barrier_wait(self, ticket: int, slice_ns: int) -> bool:
        """True once all PEs have arrived; False when `slice_ns` nanoseconds are over first."""
        return self._check(self._library.tdist_rt_barrier_wait(ticket, slice_ns)) == 0

    def wait_until(self, address: int, width: int, compare: int, value: int, slice_ns: int) -> bool:
        """True once the word of `width` bytes at `address` compares with `value`; False when the slice is over."""
        return self._check(self._library.tdist_rt_wait_until(address, width, compare, value, slice_ns)) == 0

    def put(self, destination: int, source: int, bytes_: int, pe: int) -> None:
        """Copy `bytes_` bytes from local `source` to PE `pe`'s object at the local symmetric address `destination`."""
        self._check(self._library.tdist_rt_put(destination, source, bytes_, pe))

    def get(self, destination: int, source: int, bytes_: int, pe: int) -> None:
        """Copy `bytes_` bytes from PE `pe`'s object at the local symmetric address `source` to local `destination`."""
        self._check(self._library.tdist_rt_get(destination, source, bytes_, pe))

    def signal(self, address: int, width: int, value: int, operation: int, pe: int) -> None:
        """Set (0) or add (1) `value` on PE `pe`'s signal word of `width` bytes (4 or 8)."""
        self._check(self._library.tdist_rt_signal(address, width, value, operation, pe))

    def quiet(self) -> None:
        """Wait until every put of this PE is complete."""
        self._check(self._library.tdist_rt_quiet())

    def fence(self) -> None:
        """Order the puts of this PE to each PE."""
        self._check(self._library.tdist_rt_fence())

    def describe_waits(self) -> list[dict[str, Any]]:
        """What this process's programs and host calls wait for now. May be called from any thread."""
        capacity = 1 << 16
        while True:
            buffer = ctypes.create_string_buffer(capacity)
            needed = self._check(self._library.tdist_rt_describe_waits(buffer, capacity))
            if needed <= capacity:
                waits: list[dict[str, Any]] = json.loads(buffer.value.decode(errors="replace") or "[]")
                return waits
            capacity = needed


@functools.cache
def library() -> Library:
    """The loaded library. Raises NativeError, with the way to mend it, when it is missing or does not fit."""
    try:
        path = library_path()
        return Library(path)
    except (OSError, ImportError, AttributeError) as error:
        raise NativeError(f"the simulator's library cannot be loaded ({error}): build it with nox -s build") from error
