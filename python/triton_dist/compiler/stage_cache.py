"""Results of compiler stages, kept on disk by the content of what went in.

All ranks of a job compile the same kernels at the same moment. The first takes a lock and works, the others wait
for its result; what was made once is found by every later process.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

from filelock import FileLock

from triton_dist import env


def _directory() -> Path | None:
    """The cache folder, or None (with one warning) where it cannot be written: then nothing is kept."""
    directory = Path(env.TRITON_DIST_CACHE_DIR.get()).expanduser() / "kernels"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _warn_unusable(directory, error)
        return None
    if not os.access(directory, os.W_OK):
        _warn_unusable(directory, PermissionError("not writable"))
        return None
    return directory


def _warn_unusable(directory: Path, error: OSError) -> None:
    warnings.warn(
        f"kernels are not cached: {directory} cannot be used ({error}); set TRITON_DIST_CACHE_DIR to a writable folder",
        stacklevel=4,
    )


def digest(parts: Iterable[str | bytes]) -> str:
    """SHA-256 of `parts`, each with its length, so that no two lists of parts give one digest by accident."""
    sha = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        sha.update(len(data).to_bytes(8, "little"))
        sha.update(data)
    return sha.hexdigest()


def _write(path: Path, data: bytes) -> None:
    """Write `data` so that a reader sees all of it or no file at all."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def produce_once(
    stage: str, parts: Iterable[str | bytes], produce: Callable[[], bytes], *, anew: bool = False
) -> bytes:
    """The result of `produce()` for these inputs: from disk, else made now, by one process at a time.

    `stage` is the file's ending; `parts` is everything that the result depends on. It is made also where it is on disk
    with `anew`, or under TRITON_ALWAYS_COMPILE.
    """
    directory = _directory()
    if directory is None:
        return produce()
    path = directory / f"{digest(parts)}.{stage}"
    if anew or env.TRITON_ALWAYS_COMPILE.get():
        result = produce()
        _write(path, result)
        return result
    if not path.exists():
        with FileLock(f"{path}.lock"):
            if not path.exists():
                _write(path, produce())
    return path.read_bytes()


def keep(ending: str, data: bytes) -> Path | None:
    """The path of a file with this very content, made when it is not there; None when nothing can be kept."""
    directory = _directory()
    if directory is None:
        return None
    path = directory / f"{digest([data])}.{ending}"
    if not path.exists():
        _write(path, data)
    return path
