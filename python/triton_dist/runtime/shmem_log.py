"""aclshmem's log: what the simulator's shmem says, as SHMEM_LOG_LEVEL, SHMEM_LOG_TO_STDOUT and SHMEM_LOG_PATH want it.

The logger is `aclshmem`, with one child for each part. Nothing reaches the root logger, and nothing is written, not
even a folder made, before there is something to say.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from pathlib import Path

from triton_dist import env

# aclshmem's levels, by number, with Python's.
LEVELS = {
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}

logger = logging.getLogger("aclshmem")
logger.propagate = False
logger.addHandler(logging.NullHandler())  # or Python would print what is said before `configure`

_level_is_set = False


def configure() -> None:
    """Lets the environment's variables act; to be called where shmem is initialised.

    Raises:
        EnvironmentVariableError: one of them holds what it may not.
    """
    level = LEVELS[env.SHMEM_LOG_LEVEL.get()]
    to_stdout = env.SHMEM_LOG_TO_STDOUT.get()
    folder = env.SHMEM_LOG_PATH.get()
    if not _level_is_set:
        logger.setLevel(level)
    for handler in list(logger.handlers):
        if isinstance(handler, (_Console, _Files)):
            logger.removeHandler(handler)
            handler.close()
    handler = _Console() if to_stdout else _Files(folder)
    handler.setFormatter(_Lines())
    logger.addHandler(handler)


def set_level(level: int) -> None:
    """Sets the level, one of Python's, for as long as this process runs; SHMEM_LOG_LEVEL acts no more."""
    global _level_is_set
    logger.setLevel(level)
    _level_is_set = True


class _Lines(logging.Formatter):
    """Time, level, process id, module, file and line, message; one line each."""

    def __init__(self) -> None:
        line = "{asctime}.{msecs:03.0f} {levelname} {process} {name} {filename}:{lineno} {message}"
        super().__init__(line, datefmt="%Y-%m-%d %H:%M:%S", style="{")
        self._names = {number: name for name, number in LEVELS.items()}

    def format(self, record: logging.LogRecord) -> str:
        shown = logging.makeLogRecord(record.__dict__)
        shown.levelname = self._names.get(record.levelno, record.levelname)
        return super().format(shown).replace("\n", "\\n")


class _Console(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to what standard output is when something is said."""

    def __init__(self) -> None:
        super().__init__(sys.stdout)

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stdout
        super().emit(record)


class _Files(logging.Handler):
    """Writes to a file of this process in a folder, both made when there is something to write."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._file: logging.FileHandler | None = None
        self._pid = 0
        self._failed = False

    def emit(self, record: logging.LogRecord) -> None:
        if self._pid != os.getpid():  # also in the child of a fork, whose file is another
            self._open()
        if self._file is not None:
            self._file.emit(record)

    def _open(self) -> None:
        self._close_file()
        self._pid = os.getpid()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file = logging.FileHandler(self._folder / f"shmem_{self._pid}.log", encoding="utf-8")
        except OSError as error:
            if not self._failed:
                self._failed = True
                warnings.warn(
                    f"aclshmem's log is not written, its folder cannot be used: {error}. Set SHMEM_LOG_PATH to "
                    "another, or SHMEM_LOG_TO_STDOUT=1",
                    RuntimeWarning,
                    stacklevel=2,
                )
            return
        self._file.setFormatter(self.formatter)

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def close(self) -> None:
        self._close_file()
        super().close()
