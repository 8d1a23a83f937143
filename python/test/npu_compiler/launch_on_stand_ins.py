"""Launches a distributed kernel as on a host with NPUs; what lies behind triton-ascend's Python is a stand-in.

Backend, driver, launcher and argument handling are triton-ascend's own, with this project's stage in them. In place of
its two C extensions, which need CANN to be built, are Python modules that note what they are called with; and torch has
an `npu` with nothing but a current device. It prints one line of JSON.
"""

# Torch gets its `npu` here.
# mypy: ignore-errors

from __future__ import annotations

import json
import mmap
import sys
import types
from pathlib import Path

import torch
import triton
from triton.backends.ascend import driver

from triton_dist.commands.selftest.kernels import signal_after_data

STREAM, FUNCTION = 0x5000, 0xF000
SOC, CORES = "Ascend910B3", 20
noted = {}

# What torch_npu is asked for.
torch.npu = types.SimpleNamespace(current_device=lambda: 0)
torch_npu = sys.modules["torch_npu"] = types.ModuleType("torch_npu")
extension = sys.modules["torch_npu._C"] = torch_npu._C = types.ModuleType("torch_npu._C")
extension._npu_getCurrentRawStream = lambda device: STREAM


class Utils:
    """The driver's questions to CANN."""

    def get_arch(self):
        return SOC

    def get_aicore_num(self):
        return CORES

    def get_aivector_core_num(self):
        return 2 * CORES

    def get_device_properties(self, device):
        return {"max_shared_mem": 1, "num_aicore": CORES, "num_vectorcore": 2 * CORES}

    def load_binary(self, name, kernel, shared, device):
        noted["loaded"] = [name, kernel.decode()]
        return 1, FUNCTION, 0, 0


def launch(x, y, z, stream, function, packed, metadata, enter, leave, *arguments):
    """The extension that triton-ascend's launcher makes for each signature: it takes a tensor's address."""
    addresses = [each.data_ptr() - base if hasattr(each, "data_ptr") else each for each in arguments]
    noted["launched"] = [[x, y, z], stream, function, addresses]


def stub(header, wrapper, debug=False):
    """Gives a module in place of the one that would be compiled of `wrapper`, with the same function."""
    noted["wrapper takes pointers by data_ptr"] = 'PyObject_GetAttrString(obj, "data_ptr")' in wrapper
    noted["arguments of the device function"] = wrapper.partition("struct __attribute__((packed))")[2].count(
        "void* arg"
    )
    file = Path(sys.argv[1]) / "launcher.py"
    file.write_text("from __main__ import launch\n")
    return str(file)


# The class stays, which other modules of triton-ascend's have by its name already.
for name in ("__new__", "__init__"):
    setattr(driver.NPUUtils, name, getattr(object, name))
for name in (name for name in vars(Utils) if not name.startswith("_")):
    setattr(driver.NPUUtils, name, getattr(Utils, name))
driver.make_npu_launcher_stub = stub
triton.runtime.driver.set_active(driver.NPUDriver())

# A symmetric heap: memory that no allocator of torch's knows, with objects inside of it.
heap = mmap.mmap(-1, 1 << 16)
whole = torch.frombuffer(heap, dtype=torch.uint8)
base = whole.data_ptr()
inbox = whole[4096 : 4096 + 4 * 64].view(torch.float32)
signal = whole[8192 + 3 * 64 : 8192 + 4 * 64].view(torch.int64)
data, out = (whole[begin : begin + 4 * 64].view(torch.float32) for begin in (16, 1024 + 8))
signal_after_data[(3,)](inbox, signal, data, out, BLOCK=64)
print(json.dumps(noted))
