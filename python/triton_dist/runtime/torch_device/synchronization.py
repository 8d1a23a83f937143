"""Who must be waited for when the host waits for an NPU."""

from __future__ import annotations

from collections.abc import Callable

Hook = Callable[[int], None]

_hooks: list[Hook] = []


def on_synchronize(hook: Hook) -> Callable[[], None]:
    """Has `hook(device_index)` called whenever the host waits for an NPU; returns what takes it out again.

    The host waits in torch.npu.synchronize, Stream.synchronize and Event.synchronize. An error that a hook raises comes
    out of these.
    """
    _hooks.append(hook)
    return lambda: _hooks.remove(hook)


def run(device_index: int) -> None:
    """Calls every hook for NPU `device_index`, in the order in which they were registered."""
    for hook in tuple(_hooks):
        hook(device_index)
