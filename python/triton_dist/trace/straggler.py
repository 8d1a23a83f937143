"""A process of its own that outlives the ranks of a recorded job: `python -m triton_dist.trace.straggler FILE FAMILY`.

The last rank to leave makes the timeline. Where ranks are killed nobody leaves, and this process makes it.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from triton_dist import env
from triton_dist.trace import recording


def start(file: Path, family: str) -> None:
    """Starts it. Its session is its own, so that what ends a rank's group does not end it."""
    command = [sys.executable, "-m", __name__, str(file), family]
    # Nobody waits for it: it ends after the process that has started it.
    with suppress(OSError):
        subprocess.Popen(
            command,
            env=env.child_environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def main(file: Path, family: str) -> None:
    """Waits until all ranks have gone, by the locks that they hold; then there is something to do or not."""
    # Rank 0 comes first: when it goes, all ranks have long made their files.
    for path in sorted(file.parent.glob(f"{family}.*.events"), key=lambda path: path.name != f"{family}.0.events"):
        _wait_until_left(path)
    for path in file.parent.glob(f"{family}.*.events"):
        _wait_until_left(path)
    recording.merge_if_left(file, family)


def _wait_until_left(path: Path) -> None:
    with suppress(FileNotFoundError):
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH)
        finally:
            os.close(fd)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
