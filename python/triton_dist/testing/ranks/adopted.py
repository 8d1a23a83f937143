"""The rank's side where a suite starts its ranks itself, with torch.multiprocessing: what is added to its function."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import reduction
from typing import Any

from triton_dist.testing.ranks.processes import die_with_parent
from triton_dist.testing.ranks.watcher import Watcher, write_stacks_to
from triton_dist.testing.ranks.wire import Channel, close_all

# Whether this process is a rank that the zygote has forked in the place of one that multiprocessing would have.
forked_by_zygote = False


class Descriptor:
    """A descriptor that goes with its object when multiprocessing sends that to the process it starts."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (reduction.DupFd(self.fd),)


def _received(duplicate: Any) -> Descriptor:
    return Descriptor(duplicate.detach())


@dataclass(frozen=True)
class AdoptedWorker:
    """A suite's worker function, to be called in the process of a rank in its place.

    Attributes:
        function: the suite's own.
        pytest: the pid of the process that starts the ranks.
        channels, stacks: one each a rank: its end of the channel to pytest, a file for faulthandler.
        lease: not used, only kept open: they hold the NPUs.
    """

    function: Callable[..., object]
    pytest: int
    channels: tuple[Descriptor, ...]
    stacks: tuple[Descriptor, ...]
    lease: tuple[Descriptor, ...]

    def __call__(self, rank: int, *args: object) -> None:
        __tracebackhide__ = True
        # A process of multiprocessing's fork server, or of the zygote, has that for its parent, which ends with pytest.
        by_another = forked_by_zygote or type(multiprocessing.current_process()).__name__ == "ForkServerProcess"
        die_with_parent(os.getppid() if by_another else self.pytest)
        # Out of the terminal's reach: pytest ends ranks on Ctrl-C, once.
        os.setpgid(0, 0)
        close_all(d.fd for i, d in enumerate(self.channels + self.stacks) if i % len(self.channels) != rank)
        write_stacks_to(self.stacks[rank].fd)
        Watcher(Channel.of_descriptor(self.channels[rank].fd), AdoptedWorker.__call__.__code__).start()
        self.function(rank, *args)
