"""The secret by which the ranks of a job know each other.

TRITON_DIST_JOB_SECRET where it is set; else 32 random bytes in a file that only this user can read, one for each
address. Whoever comes first makes the file. It lives from then until the meeting has ended, so both sides read it
anew for every handshake: what changes meanwhile costs one more attempt.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from triton_dist import env
from triton_dist.runtime.meeting.errors import RendezvousError

_BYTES = 32
# What crashed jobs have left is removed after so long.
_STALE_SECONDS = 24 * 3600.0


class JobSecret:
    """The secret of the jobs that one user has at one address.

    Attributes:
        is_given: whether TRITON_DIST_JOB_SECRET gives it.
    """

    def __init__(self, address: str) -> None:
        """`address` names the place in the words that all ranks have for it."""
        self._name = hashlib.sha256(f"{os.geteuid()}\0{address}".encode()).hexdigest()[:32]
        given = env.TRITON_DIST_JOB_SECRET.get()
        self.is_given = given is not None
        self._given = None if given is None else hashlib.sha256(given.encode()).digest()

    def read(self) -> bytes:
        """The secret as it is now.

        Raises:
            RendezvousError: the file or its folder is another user's, or others may read it.
        """
        if self._given is not None:
            return self._given
        with _folder() as folder:
            while True:
                with contextlib.suppress(FileNotFoundError):
                    return self._load(folder)
                self._make(folder)

    def discard(self) -> None:
        """Removes the file: nobody of this meeting needs it any more."""
        if self._given is None:
            with contextlib.suppress(OSError, RendezvousError), _folder() as folder:
                os.unlink(self._name, dir_fd=folder)

    def _load(self, folder: int) -> bytes:
        try:
            descriptor = os.open(self._name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise RendezvousError(f"cannot read the secret of the job: {_path() / self._name}: {error}") from None
        try:
            _check(descriptor, _path() / self._name, stat.S_IFREG)
            content = os.read(descriptor, _BYTES + 1)
        finally:
            os.close(descriptor)
        if len(content) != _BYTES:
            raise RendezvousError(
                f"{_path() / self._name} has {len(content)} bytes, not {_BYTES}: it is no job secret. Remove it"
            )
        return content

    def _make(self, folder: int) -> None:
        """Makes the file whole: under another name first, so that nobody reads half of it."""
        draft = f"{self._name}.{secrets.token_hex(8)}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
        try:
            with open(descriptor, "wb") as file:
                file.write(secrets.token_bytes(_BYTES))
            with contextlib.suppress(FileExistsError):  # another rank was faster
                os.link(draft, self._name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            os.unlink(draft, dir_fd=folder)
        _remove_stale(folder)


def _path() -> Path:
    runtime = env.XDG_RUNTIME_DIR.get()
    if runtime is not None:
        with contextlib.suppress(OSError):  # it is not there
            if runtime.stat().st_uid == os.geteuid():  # `su` and `sudo -E` leave that of another user set
                return runtime / "triton-dist"
    # Not the directory of TMPDIR, which may differ from rank to rank.
    return Path("/tmp") / f"triton-dist-{os.geteuid()}"


@contextlib.contextmanager
def _folder() -> Iterator[int]:
    """A descriptor of the folder of secrets, which is made where it is missing."""
    path = _path()
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise RendezvousError(
            f"the secret of the job cannot be kept: {path} cannot be made ({error.strerror}). "
            "Set XDG_RUNTIME_DIR to a folder of yours, or TRITON_DIST_JOB_SECRET to one text on all ranks"
        ) from None
    try:
        _check(descriptor, path, stat.S_IFDIR)
        yield descriptor
    finally:
        os.close(descriptor)


def _check(descriptor: int, path: Path, kind: int) -> None:
    """Raises RendezvousError unless this is of the kind, this user's, and nobody else's to read or write."""
    status = os.fstat(descriptor)
    if stat.S_IFMT(status.st_mode) != kind:
        wrong = "is no regular file"
    elif status.st_uid != os.geteuid():
        wrong = f"belongs to user {status.st_uid}, not to user {os.geteuid()}"
    elif status.st_mode & 0o077:
        wrong = f"has permissions {stat.S_IMODE(status.st_mode):o}: others than its owner may use it"
    else:
        return
    raise RendezvousError(f"the secret of the job cannot be kept: {path} {wrong}. Remove it, or set XDG_RUNTIME_DIR")


def _remove_stale(folder: int) -> None:
    oldest = time.time() - _STALE_SECONDS
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.stat(follow_symlinks=False).st_mtime < oldest:
                    os.unlink(entry.name, dir_fd=folder)
