"""torch.npu.Stream and torch.npu.Event.

Kernels run in streams, beside the host. An operator of torch runs on the host, within its call: it waits for what
comes before it in the current stream and was given its tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from triton_dist.runtime.torch_device import synchronization
from triton_dist.runtime.torch_device.indices import Device, index_of
from triton_dist.runtime.torch_device.library import library

if TYPE_CHECKING:
    from typing_extensions import Self


class Stream(torch.Stream):
    """A queue of work of one NPU.

    Args:
        device: the NPU; the current one by default.
        priority: taken and not used.
        stream_id, device_index, device_type: name a stream that exists, as torch's own streams do.
    """

    npu_stream: int

    def __new__(cls, device: Device = None, priority: int = 0, **existing: Any) -> Self:
        if existing:
            return super().__new__(cls, **existing)
        return super().__new__(cls, device=torch.device("npu", index_of(device)), priority=priority)

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

    _timed: bool
    _is_recorded: bool

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Self:
        event = super().__new__(cls, device="npu", enable_timing=enable_timing)
        event._timed = enable_timing
        event._is_recorded = False
        return event

    def record(self, stream: torch.Stream | None = None) -> None:
        """Makes this the moment up to which `stream`, by default the current one, has been given work."""
        super().record(stream)
        self._is_recorded = True

    def elapsed_time(self, end_event: torch.Event) -> float:
        """Milliseconds from this event to `end_event`; waits until both have happened.

        Raises:
            RuntimeError: one of them has not been recorded, or was made without enable_timing=True.
        """
        # torch's own method does not take an event of a derived class.
        if not isinstance(end_event, Event) or not (self._timed and end_event._timed):
            raise RuntimeError("elapsed_time needs two torch.npu.Event made with enable_timing=True")
        if not (self._is_recorded and end_event._is_recorded):
            raise RuntimeError("elapsed_time needs two events that have been recorded")
        return (end_event._happened_ns() - self._happened_ns()) / 1e6

    def _happened_ns(self) -> int:
        self.synchronize()
        return int(library().tdist_npu_event_ns(self.event_id))

    def synchronize(self) -> None:
        """Waits until the work before the event has ended."""
        synchronization.run(index_of(self.device))
        super().synchronize()


def as_stream(stream: torch.Stream) -> Stream:
    """`stream`, one of torch's own class, as a torch.npu.Stream."""
    return Stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type)
