"""What a host with real NPUs can tell after a hang: npu-smi's table, and CANN's logs of the ranks."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from triton_dist import env

_TIME = 10.0
# The end of a log, in bytes: the beginning tells of initialisation.
_LONGEST_LOG = 64 * 1024


def hardware_texts(pids: Sequence[int]) -> dict[str, str]:
    """Texts by file name; none of them where there is no npu-smi and no log."""
    texts = {}
    if (tool := shutil.which("npu-smi")) is not None:
        texts["npu-smi.txt"] = _output([tool, "info"])
    for pid in pids:
        for file in sorted(_log_directory().glob(f"**/*log-{pid}_*.log")):
            texts[file.name] = _end_of(file)
    return texts


def _log_directory() -> Path:
    named = env.child_environ().get("ASCEND_PROCESS_LOG_PATH")
    return Path(named) if named else Path.home() / "ascend" / "log"


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
