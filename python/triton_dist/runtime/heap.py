"""The symmetric heap of a job as this rank sees it: blocks, addresses, and access to the heaps of other ranks."""

from __future__ import annotations

import ctypes
import sys
import time

from triton_dist.runtime import launches, native


class SymmetricHeap:
    """The heaps of all ranks, mapped. An address in this rank's stands for the same object on every rank.

    Attributes:
        base: address of the first byte of this rank's heap.
        end: address behind its last byte.
        is_traced: whether calls of host code go into a trace.
    """

    def __init__(self, library: native.Library, rank: int, world_size: int, bytes_: int) -> None:
        self.base = library.heap_base(rank)
        self.end = self.base + bytes_
        self.is_traced = False
        self._library = library
        self._rank = rank
        self._world_size = world_size
        self._blocks: dict[int, int] = {}

    # ------------------------------------------------------------------------------------------ blocks

    def take(self, bytes_: int, align: int) -> int:
        """Offset in bytes of a new block; on all ranks the same if all take and give back alike.

        Raises:
            NativeError: there is no room (says how much was asked and is free).
        """
        offset = self._library.heap_alloc(bytes_, align)
        self._blocks[offset] = bytes_
        return offset

    def give_back(self, offset: int) -> None:
        """Ends the block at an offset."""
        del self._blocks[offset]
        self._library.heap_free(offset)

    def offset_of_block(self, address: int, name: str) -> int:
        """Offset in bytes of the block that begins at `address`, for the function `name`.

        Raises:
            ValueError: none does (never allocated, freed already, or of another job).
        """
        offset = address - self.base
        if offset in self._blocks:
            return offset
        for start, size in self._blocks.items():
            if start < offset < start + size:
                raise ValueError(
                    f"{name}: address {address:#x} is {offset - start} bytes inside a block of {size} bytes: "
                    "give the address of its first byte"
                )
        if self.base <= address < self.end:
            raise ValueError(
                f"{name}: nothing is allocated at address {address:#x}: "
                "it has been freed already, or was never allocated"
            )
        raise ValueError(f"{name}: address {address:#x} is not in the symmetric heap of rank {self._rank}")

    # --------------------------------------------------------------------------------------- addresses

    def translate(self, address: int, pe: int) -> int:
        """Address, in this process, of the object on rank `pe` that is at symmetric `address` here; 0 if there is none.

        Memory of another rank can be read and written there.
        """
        if not (self.base <= address < self.end and 0 <= pe < self._world_size):
            return 0
        return self._library.heap_base(pe) + (address - self.base)

    def check_range(self, address: int, bytes_: int, pe: int, name: str, align: int = 1) -> None:
        """Raises ValueError unless `bytes_` bytes at `address` are in a live block, here and on rank `pe`."""
        if not 0 <= pe < self._world_size:
            raise ValueError(f"{name}: there is no PE {pe}: the job has PEs 0 to {self._world_size - 1}")
        if bytes_ < 0:
            raise ValueError(f"{name}: size is {bytes_} bytes: it must not be negative")
        if not self.base <= address <= self.end - bytes_:
            raise ValueError(
                f"{name}: {bytes_} bytes at address {address:#x} are not in the symmetric heap of rank {self._rank} "
                f"({self.base:#x} to {self.end:#x}): use memory of aclshmem_create_tensor or aclshmem_malloc"
            )
        if address % align:
            raise ValueError(f"{name}: address {address:#x} must be a multiple of {align} bytes")
        if bytes_:
            try:
                self._library.check_symmetric(name, address, bytes_, align, pe)
            except native.NativeError as error:
                raise ValueError(str(error)) from None

    def _check_local(self, address: int, bytes_: int, name: str) -> None:
        try:
            self._library.check_local(name, address, bytes_)
        except native.NativeError as error:
            raise ValueError(str(error)) from None

    # ---------------------------------------------------------------------------------------- access

    def word(self, address: int, width: int) -> int:
        """The signed word of `width` bytes (1, 2, 4 or 8) at symmetric `address` on this rank, as it is now."""
        return int.from_bytes(ctypes.string_at(address, width), sys.byteorder, signed=True)

    def put(self, destination: int, source: int, bytes_: int, pe: int, name: str, nbi: bool = False) -> None:
        """Copies `bytes_` bytes from local `source` to symmetric `destination` on rank `pe`; complete on return.

        With `nbi` it need not be complete before the next quiet, fence or barrier; in the strict mode it is not.

        Raises:
            ValueError: rank, size or one of the addresses is not possible.
        """
        self.check_range(destination, bytes_, pe, name)
        if bytes_:
            self._check_local(source, bytes_, name)
            launches.wait_for_memory(source, bytes_)
            begin = time.monotonic_ns()
            self._library.put(destination, source, bytes_, pe, nbi)
            if self.is_traced:
                self._library.trace_host(name, begin, destination, pe, bytes_)

    def get(self, destination: int, source: int, bytes_: int, pe: int, name: str, nbi: bool = False) -> None:
        """Copies `bytes_` bytes from symmetric `source` on rank `pe` to local `destination`; complete on return.

        With `nbi` it need not be complete before the next quiet, fence or barrier; in the strict mode it is not.

        Raises:
            ValueError: rank, size or one of the addresses is not possible.
        """
        self.check_range(source, bytes_, pe, name)
        if bytes_:
            self._check_local(destination, bytes_, name)
            launches.wait_for_memory(destination, bytes_)
            begin = time.monotonic_ns()
            self._library.get(destination, source, bytes_, pe, nbi)
            if self.is_traced:
                self._library.trace_host(name, begin, source, pe, bytes_)

    def put_on_stream(self, destination: int, source: int, bytes_: int, pe: int, name: str, stream: int) -> None:
        """As :meth:`put`, when the stream comes to it."""
        self.check_range(destination, bytes_, pe, name)
        if bytes_:
            self._check_local(source, bytes_, name)
            launches.library().put_on_stream(destination, source, bytes_, pe, stream)

    def get_on_stream(self, destination: int, source: int, bytes_: int, pe: int, name: str, stream: int) -> None:
        """As :meth:`get`, when the stream comes to it."""
        self.check_range(source, bytes_, pe, name)
        if bytes_:
            self._check_local(destination, bytes_, name)
            launches.library().get_on_stream(destination, source, bytes_, pe, stream)

    def signal(
        self, address: int, width: int, value: int, operation: int, pe: int, name: str, stream: int | None = None
    ) -> None:
        """Sets (0) or adds to (1) the signal word of `width` bytes at symmetric `address` on rank `pe`.

        At once, unless a `stream` is given: then when the stream comes to it.

        Raises:
            ValueError: rank or symmetric address is not possible.
        """
        self.check_range(address, width, pe, name, align=width)
        if stream is not None:
            launches.library().signal_on_stream(address, width, value, operation, pe, stream)
            return
        begin = time.monotonic_ns()
        self._library.signal(address, width, value, operation, pe)
        if self.is_traced:
            self._library.trace_host(name, begin, address, pe, width, value, operation)

    def quiet(self) -> None:
        """Waits until everything that this rank sent is complete."""
        self._library.quiet()

    def fence(self) -> None:
        """Orders what this rank sends to each rank."""
        self._library.fence()
