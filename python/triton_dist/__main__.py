"""The command line: `python -m triton_dist COMMAND`."""

from __future__ import annotations

import errno
import io
import os
import sys

from triton_dist import commands


def _main() -> int:
    _open_output()
    try:
        code = commands.main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # Who reads the output has seen enough, as `head` has.
        _drop_output()
        return 141  # 128 + SIGPIPE, as other programs end then
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise
        # Of a file that standard output goes to, or of one that the command itself writes.
        where = f" ({error.filename})" if error.filename else ""
        print(f"python -m triton_dist: what it has to say cannot be written: {error.strerror}{where}", file=sys.stderr)
        _drop_output()
        return 1
    return code


def _drop_output() -> None:
    """Lets nobody complain at exit of what is not written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_output() -> None:
    """Lets each text be written: also one that the encoding of the terminal has no letters for, and into nowhere."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None:  # the shell closed it, as `>&-` does
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


if __name__ == "__main__":
    sys.exit(_main())
