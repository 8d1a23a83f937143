"""The command line: `python -m triton_dist COMMAND`."""

from __future__ import annotations

import os
import sys

from triton_dist import commands


def _main() -> int:
    try:
        code = commands.main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # Who reads the output has seen enough, as `head` has. Python would complain at exit of what is not written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # 128 + SIGPIPE, as other programs end then
    return code


if __name__ == "__main__":
    sys.exit(_main())
