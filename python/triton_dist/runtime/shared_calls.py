"""How many calls of each kind the ranks of a job have made that they make together, where the runtime is not in them.

A rank in such a call looks here whether the others have come to it: if so it will be over, however long that takes.
"""

from __future__ import annotations

import hashlib
import threading
import weakref

from triton_dist.runtime.native import Library


class Calls:
    """Calls of one kind that this process makes. It counts them, also before it joins a job.

    Attributes:
        count: how many have begun.
    """

    def __init__(self, name: str) -> None:
        """`name` is the same for nothing else in any process of the job; others ask for it."""
        self.count = 0
        self._key = _key(name)
        with _lock:
            _all.add(self)
        self._publish()

    def begin(self) -> int:
        """Counts a call that is about to begin; its number, from 1."""
        self.count += 1
        self._publish()
        return self.count

    def _publish(self) -> None:
        if _library is not None:
            _library.set_count(self._key, self.count)


def have_begun(name: str, by: str) -> int | None:
    """How many calls of `name` have begun on the rank of the job that counts those of `by` in any case.

    None where that is not known.
    """
    if _library is None or _library.count_of(_key(by)) < 0:
        return None
    count = _library.count_of(_key(name))
    return None if count < -1 else max(count, 0)


def publish_in(library: Library | None) -> None:
    """Counts go to the ranks of the job that `library` has joined, from now on; None: to nobody."""
    global _library
    _library = library
    if library is not None:
        with _lock:
            everything = list(_all)
        for calls in everything:
            calls._publish()


def _key(name: str) -> int:
    # Of 63 bits: names that differ have different keys but for a chance of 2**-63.
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little") >> 1


_library: Library | None = None
_all: weakref.WeakSet[Calls] = weakref.WeakSet()
_lock = threading.Lock()
