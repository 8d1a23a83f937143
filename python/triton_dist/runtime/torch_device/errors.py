"""What can keep torch from having a device `npu`."""

from __future__ import annotations


class TorchDeviceError(RuntimeError):
    """torch cannot have the device `npu`; the message is one line that says why and what to do."""
