"""torch.npu.Stream and torch.npu.Event.

Work on a simulated NPU has ended when the call that asked for it returns: streams keep order among themselves by that,
and an event is the time at which it was recorded.
"""

from __future__ import annotations

from typing import Any

import torch

from triton_dist.runtime.torch_device import synchronization
from triton_dist.runtime.torch_device.indices import Device, index_of


class Stream(torch.Stream):
    """A queue of work of one NPU.

    Args:
        device: the NPU; the current one by default.
        priority: taken and not used.
        stream_id, device_index, device_type: name a stream that exists, as torch's own streams do.
    """

    npu_stream: int

    def __new__(cls, device: Device = None, priority: int = 0, **existing: Any) -> Stream:
        if existing:
            stream = super().__new__(cls, **existing)
        else:
            stream = super().__new__(cls, device=torch.device("npu", index_of(device)), priority=priority)
        return stream

    @property  # type: ignore[no-redef]
    def npu_stream(self) -> int:
        """The stream's number; 0 is the default stream."""
        return int(self.stream_id)

    def synchronize(self) -> None:
        """Waits until the work of the stream has ended."""
        synchronization.run(self.device_index)
        super().synchronize()

    def record_event(self, event: torch.Event | None = None) -> torch.Event:
        """Records `event`, or a new one, in this stream."""
        event = event if event is not None else Event()
        event.record(self)
        return event


class Event(torch.Event):
    """A moment in a stream.

    Args:
        enable_timing: whether elapsed_time can use it.
        blocking, interprocess: taken and not used.
    """

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Event:
        return super().__new__(cls, device="npu", enable_timing=enable_timing)

    def synchronize(self) -> None:
        """Waits until the work before the event has ended."""
        synchronization.run(index_of(self.device))
        super().synchronize()


def as_stream(stream: torch.Stream) -> Stream:
    """`stream`, one of torch's own class, as a torch.npu.Stream."""
    return Stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type)
