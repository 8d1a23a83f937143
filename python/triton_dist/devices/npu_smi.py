"""Asks `npu-smi`, which may be missing, fail, hang, never stop printing, or not be for this user."""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from triton_dist import env

_NAME = "npu-smi"
# Where the driver's installer puts it; not every user has these on the PATH.
_USUAL_PLACES = ("/usr/local/bin/npu-smi", "/usr/local/sbin/npu-smi")
# The tables of a host take some kilobytes.
_MOST_OUTPUT = 1 << 20
# Seconds for a killed process to go. One that is stuck in the driver does not, and nobody waits for it.
_TIME_TO_DIE = 1.0


class NpuSmiError(RuntimeError):
    """npu-smi gave no answer; the message says why, in one line."""


class NpuSmiMissingError(NpuSmiError):
    """There is no npu-smi."""


def ask_all(*questions: Sequence[str]) -> list[str | NpuSmiError]:
    """What npu-smi prints for each list of arguments, or why it does not. They run at the same time."""

    def answer(arguments: Sequence[str]) -> str | NpuSmiError:
        try:
            return ask(*arguments)
        except NpuSmiError as error:
            return error

    with ThreadPoolExecutor(len(questions)) as executor:
        return list(executor.map(answer, questions))


def ask(*arguments: str) -> str:
    """What `npu-smi` prints for `arguments`.

    Raises:
        NpuSmiMissingError: it is not installed.
        NpuSmiError: it may not be run, failed, printed without end, or had not ended after TRITON_DIST_NPU_SMI_TIMEOUT
            seconds and was killed.
    """
    executable = _executable()
    timeout = env.TRITON_DIST_NPU_SMI_TIMEOUT.get()
    command = " ".join((_NAME, *arguments))
    try:
        process = subprocess.Popen(
            [executable, *arguments],
            # Columns and words as in the tables that are known.
            env=env.child_environ(LC_ALL="C"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # So that whatever it starts can be ended with it.
            start_new_session=True,
        )
    except OSError as error:
        raise NpuSmiError(f"{executable} cannot be run ({error.strerror})") from error
    try:
        output, complete = _read(process, time.monotonic() + timeout)
    finally:
        _end(process)
    text = output.decode(errors="replace")
    if not complete:
        if len(output) >= _MOST_OUTPUT:
            raise NpuSmiError(f"`{command}` printed more than {_MOST_OUTPUT >> 20} MiB and was killed")
        raise NpuSmiError(
            f"`{command}` had not answered after {timeout:g} s and was killed (TRITON_DIST_NPU_SMI_TIMEOUT)"
        )
    if process.returncode != 0:
        status = process.returncode
        how = f"exit status {status}" if status > 0 else signal.Signals(-status).name
        said = next((line.strip() for line in text.splitlines() if line.strip()), "it printed nothing")
        raise NpuSmiError(f"`{command}` failed ({how}): {said:.200}")
    return text


def is_installed() -> bool:
    return _find() is not None


def _executable() -> str:
    found = _find()
    if found is None:
        raise NpuSmiMissingError("npu-smi is not installed, or not on the PATH")
    return found


def _find() -> str | None:
    found = shutil.which(_NAME) or shutil.which(_NAME, mode=os.F_OK)
    return found or next((place for place in _USUAL_PLACES if os.path.exists(place)), None)


def _read(process: subprocess.Popen[bytes], deadline: float) -> tuple[bytes, bool]:
    """What the process printed, and whether that is all of it: false at the deadline, and when it is too much."""
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    chunks = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while len(chunks) < _MOST_OUTPUT:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                return bytes(chunks), False
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                break
            chunks += chunk
        else:
            return bytes(chunks), False
    # It may close its output and go on.
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return bytes(chunks), False
    return bytes(chunks), True


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    process.stdout.close()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_TIME_TO_DIE)
