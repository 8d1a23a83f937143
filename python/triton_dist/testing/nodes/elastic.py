"""Runs torchrun's elastic agent on a node, so that nothing of it is left when the node's own process is killed."""

from __future__ import annotations

import json
import os
import select
import sys
import threading
from typing import NoReturn

from triton_dist.testing.ranks.processes import become_subreaper, children, end_descendants


def main() -> NoReturn:
    """Serves as `torchrun` would; then writes which ranks have failed, with their exit codes, unless it is killed.

    The argument is JSON: "arguments", those of torchrun; "report", a descriptor to write to; "parent", the pid of the
    node's process.
    """
    settings = json.loads(sys.argv[1])
    become_subreaper()
    parent = os.pidfd_open(settings["parent"])
    if os.getppid() != settings["parent"]:
        os._exit(1)
    os.set_inheritable(settings["report"], False)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()

    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    failures: dict[int, int] = {}
    try:
        run.run(run.parse_args(settings["arguments"]))
    except ChildFailedError as error:
        failures = {rank: failure.exitcode for rank, failure in error.failures.items()}
    os.write(settings["report"], json.dumps({"failures": failures}).encode())
    os._exit(0)


def _end_with(parent: int) -> None:
    """Ends this process and all that descend from it as soon as the process of the pidfd `parent` has ended."""
    poll = select.poll()
    poll.register(parent, select.POLLIN)
    poll.poll()
    end_descendants(set(children()), lambda pid, status: None)
    os._exit(1)


if __name__ == "__main__":
    main()
