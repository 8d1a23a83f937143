"""Where the files with the locks of the host's NPUs lie.

The directory holds one file for the NPUs of each kind and one for the waiting line. They stay: a name that several
processes lock must not come and go. They may be removed while no test runs; a pool makes them again.

Their names begin with the host's identity, the kernel's boot id: all containers of a host have the same one, and hosts
that share a file system do not take each other's NPUs for their own.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from triton_dist import env
from triton_dist.testing.leases.errors import LeaseError

_NAME = "triton-dist"
_LOCK_ROOT = Path("/run/lock")
# Not the user's TMPDIR: the processes of a host must agree on one directory.
_FALLBACK_ROOT = Path("/tmp")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


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


def host_identity() -> str:
    """A short name of this boot of this host, the same in all of its containers."""
    try:
        return _BOOT_ID.read_text().strip()[:8]
    except OSError:
        return "host"


class LeaseDirectory:
    """A directory of lock files that all users of the host can open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._host = host_identity()

    @classmethod
    def of_this_host(cls) -> LeaseDirectory:
        return cls(env.TRITON_DIST_LEASE_DIR.get() or default_path())

    def identity(self) -> str:
        """The same for all processes that share the leases of one host here.

        Raises:
            LeaseError: the directory cannot be used.
        """
        with self.usable():
            self._make()
            status = self.path.stat()
        return f"{self._host} {status.st_dev} {status.st_ino}"

    def file(self, name: str) -> Path:
        return self.path / f"{self._host}-{name}"

    def open(self, name: str, size: int) -> int:
        """A descriptor of the file `name`, which is made when it is not there, with room for `size` bytes.

        Raises:
            LeaseError: the directory or the file cannot be used.
        """
        with self.usable():
            fd = self._open(self.file(name))
            try:
                if os.fstat(fd).st_size < size:
                    # Now, where a full disk is an error: later on, lines are only written over.
                    os.posix_fallocate(fd, 0, size)
            except BaseException:
                os.close(fd)
                raise
            return fd

    def open_to_read(self, name: str) -> int | None:
        """A descriptor of the file `name` for asking alone; None if it is not there. Changes nothing.

        Raises:
            LeaseError: the directory or the file cannot be used.
        """
        with self.usable():
            try:
                return os.open(self.file(name), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            except FileNotFoundError:
                return None

    def is_still(self, fd: int, name: str) -> bool:
        """Whether the file of `fd` is the one called `name`: a lock on one that was removed keeps nobody out."""
        try:
            return os.path.samestat(os.fstat(fd), os.stat(self.file(name)))
        except FileNotFoundError:
            return False

    @contextmanager
    def usable(self) -> Iterator[None]:
        """Turns the system's refusals within into one clear line."""
        try:
            yield
        except OSError as error:
            where = f": {error.filename}" if error.filename else ""
            what_to_do = "make it writable for all users of this host"
            if error.errno in _NO_ROOM:
                what_to_do = "make room on its disk"
            raise LeaseError(
                f"the lease directory {self.path} cannot be used ({error.strerror}{where}): "
                f"{what_to_do}, or set TRITON_DIST_LEASE_DIR to a directory that is"
                + (" not full" if error.errno in _NO_ROOM else "")
            ) from error

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
            self._make()
            return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
        finally:
            os.umask(mask)

    def _make(self) -> None:
        """Makes the directory if it is not there, open to all users."""
        if not self.path.is_dir():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            mask = os.umask(0)
            try:
                self.path.mkdir(mode=0o1777, exist_ok=True)
            finally:
                os.umask(mask)
