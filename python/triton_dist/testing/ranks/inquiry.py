"""Asking ranks where they are and what they wait for."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress

from triton_dist.testing.ranks.native_stacks import native_stacks
from triton_dist.testing.ranks.record import RankRecord
from triton_dist.testing.ranks.watcher import STACKS_SIGNAL
from triton_dist.testing.ranks.wire import Channel, readable

# In seconds: for the answers of ranks, and for faulthandler where an answer does not come.
_TIME_TO_EXPLAIN = 1.0
_TIME_FOR_FAULTHANDLER = 0.2


def explain(ranks: Sequence[tuple[RankRecord, Channel]], *, natively: bool) -> None:
    """Asks running ranks for their stacks and waits, and notes the answers in their records.

    A rank that does not answer, because its main thread keeps Python's lock, gets a signal upon which faulthandler
    writes its stacks. Takes little more than a second, whatever the ranks do.

    Args:
        natively: whether a debugger that the host has is asked for native stacks after that, which takes it seconds
            for each rank.
    """
    asked = [(record, channel) for record, channel in ranks if channel.send({"do": "explain"})]
    deadline = time.monotonic() + _TIME_TO_EXPLAIN
    while asked and (left := deadline - time.monotonic()) > 0:
        ready = readable([channel for _, channel in asked], left)
        for record, channel in list(asked):
            if channel not in ready:
                continue
            received = channel.receive()
            if received is not None:
                record.take(received[0])
            if received is None or record.stacks is not None:
                asked.remove((record, channel))
    for record, _ in asked:
        if record.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(record.pid, STACKS_SIGNAL)
    if asked:
        time.sleep(_TIME_FOR_FAULTHANDLER)
    if natively:
        stacks = native_stacks([record.pid for record, _ in ranks if record.pid is not None])
        for record, _ in ranks:
            record.native = stacks.get(record.pid or 0, "")
