"""The command line: `python -m triton_dist COMMAND`."""

from __future__ import annotations

import sys

from triton_dist import commands

if __name__ == "__main__":
    sys.exit(commands.main(sys.argv[1:]))
