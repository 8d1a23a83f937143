"""From xdist's workers to the process that plans: which NPUs the tests want, which only who has collected them knows.

xdist carries node ids alone. So the planning process listens, and each worker says before it gives xdist its
collection what is in it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable

import pytest

from triton_dist.testing.ranks.wire import Channel, Listener, memory_file, read_all
from triton_dist.testing.scheduling.demand import npus_wanted


class DemandListener:
    """The planning side.

    Attributes:
        address: what a worker's `tell_demand` takes.
    """

    def __init__(self) -> None:
        self._listener = Listener()
        self.address = self._listener.address

    def receive(self) -> dict[str, int]:
        """What workers have said since the last call: NPUs wanted by node id, 0 left out."""
        wanted: dict[str, int] = {}
        while (channel := self._listener.accept()) is not None:
            # It was sent before the event that has us look here, so there is nothing to wait for.
            received = channel.receive()
            channel.close()
            for fd in received[1] if received else ():
                wanted.update(json.loads(read_all(fd)))
                os.close(fd)
        return wanted

    def close(self) -> None:
        self._listener.close()


def tell_demand(address: str, items: Iterable[pytest.Item]) -> bool:
    """Tells the planning process what `items` want; False if there is none, or none of them is a multi-rank test."""
    wanted = {item.nodeid: size for item in items if (size := npus_wanted(item))}
    channel = Channel.connect(address) if wanted else None
    if channel is None:
        return False
    content = memory_file("triton-dist-demand", json.dumps(wanted).encode())
    try:
        return channel.send({"is": "demand"}, [content])
    finally:
        os.close(content)
        channel.close()
