"""The device nodes of real NPUs. Imported when the interpreter starts, so it needs next to nothing."""

from __future__ import annotations

import os
import re

from triton_dist import env

# Not davinci_manager, and none of the nodes of virtual NPUs.
_NODE = re.compile(r"davinci([0-9]{1,4})")


def physical_ids() -> tuple[int, ...]:
    """The numbers N of the nodes /dev/davinci<N>, ascending; none where the directory cannot be read."""
    try:
        names = os.listdir(_directory())
    except OSError:
        return ()
    return tuple(sorted(int(match[1]) for name in names if (match := _NODE.fullmatch(name))))


def path(physical_id: int) -> str:
    return os.path.join(_directory(), f"davinci{physical_id}")


def can_be_opened(physical_id: int) -> bool:
    """Whether this user may read and write the node, as CANN does."""
    return os.access(path(physical_id), os.R_OK | os.W_OK)


def _directory() -> str:
    return str(env.TRITON_DIST_DEVICE_DIR.get())
