"""Launches a compiled kernel on the simulated NPU of this rank."""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
from collections.abc import Callable
from typing import Any

from triton_dist import env
from triton_dist.runtime import launches, native, soc

# Each argument takes one slot of 8 bytes with its bits at the low end (tdist_kernel_entry, csrc/lib/Conversion).
_SLOT = {
    "i1": "?7x",
    "i8": "b7x",
    "u8": "B7x",
    "i16": "h6x",
    "u16": "H6x",
    "i32": "i4x",
    "u32": "I4x",
    "i64": "q",
    "u64": "Q",
    "fp16": "e6x",
    "fp32": "f4x",
    "fp64": "d",
}


class SimulatedNPULauncher:
    """Packs arguments and gives a launch to its stream. Triton makes one for each compiled kernel.

    The call returns at once, unless ASCEND_LAUNCH_BLOCKING is set; an error of the kernel comes out when the host next
    waits for it (see docs/simulator.md).
    """

    def __init__(self, src: Any, metadata: Any) -> None:
        names: list[str] = src.fn.arg_names
        constants = {names.index(key) if isinstance(key, str) else key for key in src.constants}
        constexprs = set(src.fn.constexprs)
        self._name: str = metadata.kernel_name
        self._name_buffer = ctypes.create_string_buffer(self._name.encode())
        self._name_address = ctypes.addressof(self._name_buffer)
        cores = soc.of_program(metadata.mix_mode)
        self._compile_only = env.TRITON_COMPILE_ONLY.get()
        self._blocking = env.ASCEND_LAUNCH_BLOCKING.get()
        # Triton passes every argument that is not a constexpr, also the ones that it has made constants.
        passed = [index for index in range(len(names)) if index not in constexprs]
        kept = [(position, index) for position, index in enumerate(passed) if index not in constants]
        self._slots = [(position, names[index], src.signature[names[index]]) for position, index in kept]
        # What a report calls the memory that a program waits for.
        self._names_buffer = ctypes.create_string_buffer(",".join(names[index] for _, index in kept).encode())
        self._names_address = ctypes.addressof(self._names_buffer)
        self._tail = (cores.aic, cores.aiv, len(kept), 0)
        layout = native.LAUNCH.format + "".join(_slot_format(kind, name) for _, name, kind in self._slots)
        self._pack = struct.Struct(layout).pack

    def __call__(
        self,
        grid_x: int,
        grid_y: int,
        grid_z: int,
        stream: int,
        function: int,
        packed_metadata: Any,
        launch_metadata: Any,
        enter_hook: Callable[[Any], None] | None,
        exit_hook: Callable[[Any], None] | None,
        *arguments: Any,
    ) -> None:
        values = [
            _address(arguments[position], name, self._name) if kind[0] == "*" else arguments[position]
            for position, name, kind in self._slots
        ]
        if stream == 0:  # torch.npu.Stream.npu_stream of a default stream, as a user passes it
            stream = launches.default_stream()
        file, line = _launch_place()
        grid = (grid_x, grid_y, grid_z)
        try:
            head = (function, self._name_address, file, 0, self._names_address, stream, line)
            packed = self._pack(*head, *grid, *self._tail, *values)
        except struct.error as error:
            raise TypeError(f"an argument of {self._name} does not fit its type: {error}") from error
        if self._compile_only or not (grid_x and grid_y and grid_z):
            return
        if enter_hook is not None:
            enter_hook(launch_metadata)
        library = launches.library()
        if library.launch(packed) < 0:
            raise native.NativeError(library.last_error())
        if self._blocking:
            launches.synchronize()
        if exit_hook is not None:
            exit_hook(launch_metadata)


def _launch_place() -> tuple[int, int]:
    """The user's line that launches: address of the file's name, as C reads it, and the line."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("triton.", "triton_dist.")):
        frame = frame.f_back
    return ctypes.addressof(_file_name(frame.f_code.co_filename)), frame.f_lineno


@functools.cache
def _file_name(name: str) -> Any:
    # The cache keeps it for as long as native code may read it.
    return ctypes.create_string_buffer(name.encode())


def _slot_format(kind: str, name: str) -> str:
    if kind[0] == "*":
        return "Q"
    try:
        return _SLOT[kind]
    except KeyError:
        raise TypeError(f"argument {name} has type {kind}, which cannot be passed by value to a kernel") from None


def _address(value: Any, name: str, kernel: str) -> int:
    """The address behind a pointer argument: a tensor on npu, an integer address, or None (null)."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    device = getattr(value, "device", None)
    if device is not None and device.type != "npu":
        raise ValueError(
            f"argument {name} of {kernel} is a tensor on {device}: kernels take tensors on npu, move it with .npu()"
        )
    address: int = value.data_ptr()
    return address
