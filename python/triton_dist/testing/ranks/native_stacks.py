"""The native stacks of other processes, by a debugger that the host has."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence

# In the order in which they are tried: the quickest first.
_TOOLS: dict[str, tuple[str, ...]] = {
    "eu-stack": ("--pid={pid}", "--num-frames=64"),
    "gdb": ("-nx", "-batch", "-p", "{pid}", "-ex", "thread apply all backtrace 64"),
    "py-spy": ("dump", "--native", "--pid", "{pid}"),
}
# For all processes together, in seconds: symbols of torch take their time.
_TIME = 20.0
_LONGEST = 256 * 1024


def native_stacks(pids: Sequence[int]) -> dict[int, str]:
    """The stacks of all threads of each process that could be asked; nothing where no tool is installed."""
    tool = next((path for name in _TOOLS if (path := shutil.which(name))), None)
    if tool is None:
        return {}
    arguments = next(arguments for name, arguments in _TOOLS.items() if tool.endswith(name))
    deadline = time.monotonic() + _TIME
    stacks = {}
    # One after the other: each may read hundreds of megabytes of symbols.
    for pid in pids:
        text = _ask([tool, *(argument.format(pid=pid) for argument in arguments)], deadline - time.monotonic())
        if text:
            stacks[pid] = text
    return stacks


def _ask(command: list[str], seconds: float) -> str:
    if seconds <= 0:
        return ""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        output.seek(0)
        text = output.read(_LONGEST).decode(errors="replace")
    lines = text.splitlines()
    # What comes before the first stack is talk of the tool's own.
    first = next((i for i, line in enumerate(lines) if line.startswith(("Thread ", "TID ", "#0"))), len(lines))
    return "\n".join(lines[first:])
