"""What a host with real NPUs can tell after a hang: npu-smi's table, and CANN's logs of the ranks."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from triton_dist import env
from triton_dist.runtime import backend

_TIME = 10.0
# The end of a log, in bytes: the beginning tells of initialisation.
_LONGEST_LOG = 64 * 1024


def hardware_texts(pids: Sequence[int]) -> dict[str, str]:
    """Texts by file name about the processes `pids`; none where NPUs are simulated, or nobody has anything to say."""
    if backend.active() == "sim":
        return {}
    texts = {}
    if (tool := shutil.which("npu-smi")) is not None:
        texts["npu-smi.txt"] = _output([tool, "info"])
    for pid in pids:
        # Of the host's part of CANN (plog-PID_TIME.log) and of each NPU's (device-PID_TIME.log).
        for file in sorted(env.ASCEND_PROCESS_LOG_PATH.get().glob(f"**/*-{pid}_*.log")):
            texts[file.name] = _end_of(file)
    return texts


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIME, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{command[0]}: {error}"
    return done.stdout + done.stderr


def _end_of(file: Path) -> str:
    try:
        return file.read_bytes()[-_LONGEST_LOG:].decode(errors="replace")
    except OSError as error:
        return str(error)
