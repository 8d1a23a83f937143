"""Where the lock files of the host's NPUs lie.

The directory holds one empty file an NPU and one for the waiting line. They stay: a name that several processes
lock must not come and go. They may be removed while no test runs; a pool makes them again.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from triton_dist import env
from triton_dist.testing.leases.errors import LeaseError
from triton_dist.testing.leases.locks import lock_file

_NAME = "triton-dist"
_LOCK_ROOT = Path("/run/lock")
# Not the user's TMPDIR: the processes of a host must agree on one directory.
_FALLBACK_ROOT = Path("/tmp")


def default_path() -> Path:
    """The directory that every user of the host comes to without being told."""
    preferred = _LOCK_ROOT / _NAME
    if preferred.is_dir() or _open_to_all(_LOCK_ROOT):
        return preferred
    return _FALLBACK_ROOT / _NAME


def _open_to_all(path: Path) -> bool:
    """Whether any user may write to `path`: asked of its mode, since the answer must not depend on who asks."""
    try:
        return bool(path.stat().st_mode & stat.S_IWOTH)
    except OSError:
        return False


class LeaseDirectory:
    """A directory of lock files that all users of the host can open."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of_this_host(cls) -> LeaseDirectory:
        return cls(env.TRITON_DIST_LEASE_DIR.get() or default_path())

    def open(self, name: str) -> int:
        """A descriptor of the lock file `name`, which is made when it is not there.

        Raises:
            LeaseError: the directory or the file cannot be used.
        """
        try:
            return self._open(self.path / name)
        except OSError as error:
            raise LeaseError(
                f"the lease directory {self.path} cannot be used ({error.strerror}: {error.filename}): "
                "make it writable for all users of this host, or set TRITON_DIST_LEASE_DIR to a directory that is"
            ) from error

    def hold(self, name: str) -> int | None:
        """A descriptor that has the file `name` locked; None if another has it.

        Raises:
            LeaseError: the directory or the file cannot be used.
        """
        while True:
            fd = self.open(name)
            if not lock_file(fd):
                os.close(fd)
                return None
            if self._is_still(fd, self.path / name):
                return fd
            # The file was removed between open and lock: this lock keeps nobody out.
            os.close(fd)

    def _open(self, path: Path) -> int:
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        while True:
            # Without O_CREAT first: where the kernel protects regular files in directories like this one, O_CREAT
            # on another user's file is refused.
            try:
                return os.open(path, flags)
            except FileNotFoundError:
                pass
            try:
                return self._create(path, flags)
            except FileExistsError:
                continue

    def _create(self, path: Path, flags: int) -> int:
        # The mode must be right from the first moment: another user may open the file before a chmod came.
        mask = os.umask(0)
        try:
            if not self.path.is_dir():
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.path.mkdir(mode=0o1777, exist_ok=True)
            return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
        finally:
            os.umask(mask)

    @staticmethod
    def _is_still(fd: int, path: Path) -> bool:
        try:
            return os.path.samestat(os.fstat(fd), os.stat(path))
        except FileNotFoundError:
            return False
