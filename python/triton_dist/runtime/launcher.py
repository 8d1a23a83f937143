"""Launches a compiled kernel on the simulated NPU of this rank."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from triton_dist import env
from triton_dist.runtime import job, native, soc

# How long native code runs before Python looks at signals and at the other ranks.
SLICE_NS = 50_000_000

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
    """Packs arguments and runs all programs of a launch. Triton makes one for each compiled kernel.

    Launches are synchronous: the call returns when every program has ended.
    """

    def __init__(self, src: Any, metadata: Any) -> None:
        names: list[str] = src.fn.arg_names
        constants = {names.index(key) if isinstance(key, str) else key for key in src.constants}
        constexprs = set(src.fn.constexprs)
        self._name: str = metadata.kernel_name
        self._cores = soc.lookup(metadata.target.arch).cores(metadata.mix_mode)
        self._compile_only = env.TRITON_COMPILE_ONLY.get()
        # Triton passes every argument that is not a constexpr, also the ones that it has made constants.
        passed = [index for index in range(len(names)) if index not in constexprs]
        kept = [(position, index) for position, index in enumerate(passed) if index not in constants]
        self._slots = [(position, names[index], src.signature[names[index]]) for position, index in kept]
        self._pack = struct.Struct("<" + "".join(_slot_format(kind, name) for _, name, kind in self._slots)).pack

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
        try:
            packed = self._pack(*values)
        except struct.error as error:
            raise TypeError(f"an argument of {self._name} does not fit its type: {error}") from error
        if self._compile_only or not (grid_x and grid_y and grid_z):
            return
        if enter_hook is not None:
            enter_hook(launch_metadata)
        self._run(function, native.GRID(grid_x, grid_y, grid_z), packed)
        if exit_hook is not None:
            exit_hook(launch_metadata)

    def _run(self, function: int, grid: Any, packed: bytes) -> None:
        library = native.library()
        launch = library.launch_begin(function, self._name, grid, self._cores, packed, len(self._slots))
        try:
            while True:
                result = library.launch_run(launch, SLICE_NS)
                if result == 0:
                    return
                if result < 0:
                    raise native.NativeError(library.last_error())
                if (current := job.current()) is not None:
                    current.check_peers()
        finally:
            library.launch_end(launch)


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
