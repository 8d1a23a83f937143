"""Loads the C++ part of the torch device, and what of it Python calls by ctypes."""

from __future__ import annotations

import ctypes
import functools

from triton_dist.runtime.torch_device import build


@functools.cache
def library() -> ctypes.CDLL:
    """The loaded library: torch has the device's guard, allocator and operators from here on.

    Raises:
        TorchDeviceError: it cannot be built.
    """
    import torch

    path = str(build.library())
    torch.ops.load_library(path)
    # PyDLL: what is called here takes no time, and much of it touches Python's objects.
    loaded = ctypes.PyDLL(path)
    loaded.tdist_npu_set_count.argtypes = [ctypes.c_int32]
    loaded.tdist_npu_set_count.restype = None
    loaded.tdist_npu_on_release.argtypes = [ctypes.c_void_p]
    loaded.tdist_npu_on_release.restype = None
    loaded.tdist_npu_connect.argtypes = [ctypes.c_void_p, ctypes.py_object]
    loaded.tdist_npu_connect.restype = None
    loaded.tdist_npu_current_stream.argtypes = [ctypes.c_int32]
    loaded.tdist_npu_current_stream.restype = ctypes.c_int64
    loaded.tdist_npu_event_ns.argtypes = [ctypes.c_void_p]
    loaded.tdist_npu_event_ns.restype = ctypes.c_int64
    return loaded
