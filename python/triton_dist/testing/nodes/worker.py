"""What torchrun's elastic agent starts as a rank: it comes to the process of its node, gets its job, and does it."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from triton_dist import env
from triton_dist.testing.ranks import rank
from triton_dist.testing.ranks.processes import die_with_parent
from triton_dist.testing.ranks.wire import Channel

# What torchrun tells a rank, besides variables that begin with _OF_ELASTIC.
_OF_A_RANK = frozenset(
    {
        "GROUP_RANK",
        "GROUP_WORLD_SIZE",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "MASTER_ADDR",
        "MASTER_PORT",
        "RANK",
        "ROLE_NAME",
        "ROLE_RANK",
        "ROLE_WORLD_SIZE",
        "WORLD_SIZE",
    }
)
_OF_ELASTIC = "TORCHELASTIC_"


def main() -> NoReturn:
    """The argument is the address of the node's process."""
    # Ends with the elastic agent; that one's process group is not this one's.
    die_with_parent(os.getppid())
    own = {
        name: value for name, value in env.child_environ().items() if name in _OF_A_RANK or name.startswith(_OF_ELASTIC)
    }
    number = int(own["RANK"])
    channel = Channel.connect(sys.argv[1])
    if channel is None or not channel.send({"rank": number, "pid": os.getpid()}):
        sys.exit("the process of this node is gone")
    received = channel.receive()
    channel.close()
    if received is None:
        sys.exit("the process of this node is gone")
    status = 1
    try:
        status = rank.run_alone(number, own, received[1])
    finally:
        os._exit(status)


if __name__ == "__main__":
    main()
