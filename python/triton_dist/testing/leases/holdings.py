"""Who has which NPU: for each a byte to lock, and a place for what to tell people.

A holding ends with the last descriptor of the open file by which it was taken. Whether it ended in order can be
seen from what is written: `release` writes that it did, and who is killed does not come to it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from triton_dist.testing.leases.directory import LeaseDirectory
from triton_dist.testing.leases.locks import lock_bytes, unlocked_bytes
from triton_dist.testing.leases.parties import Party, from_bytes, to_bytes

# Where the bytes to lock begin, one an NPU: beyond the end of the file. Side by side, they are few ranges to ask for.
_LOCKS = 1 << 32
# Bytes an NPU for what is written.
_ROOM = 2048
_LONGEST_REASON = 200

State = Literal["held", "released", "suspect"]


@dataclass(frozen=True)
class Holding:
    """What was last written of an NPU.

    Attributes:
        party: who had it.
        state: "held" from its beginning, whether it has ended since or not; "released" if it ended in order;
            "suspect" if that is not enough, because the NPU may not be fit for the next.
        reason: why it is suspect; empty if it is not.
    """

    party: Party
    state: State
    reason: str = ""


class Holdings:
    """The holdings of the host's NPUs of one kind, "sim" or "npu", by number.

    Attributes:
        directory: where they are kept.
    """

    def __init__(self, directory: LeaseDirectory, kind: str) -> None:
        self.directory = directory
        self._name = kind

    def free(self, numbers: Sequence[int]) -> frozenset[int]:
        """Those of `numbers` that nobody has now. Changes nothing."""
        fd = self.directory.open_to_read(self._name)
        if fd is None:
            return frozenset(numbers)
        try:
            first, last = min(numbers, default=0), max(numbers, default=0)
            unlocked = unlocked_bytes(fd, _LOCKS + first, last - first + 1)
            return frozenset(number for number in numbers if _LOCKS + number in unlocked)
        finally:
            os.close(fd)

    def take(self, numbers: Iterable[int], party: Party) -> int | None:
        """A descriptor that holds all of `numbers`; None, and none of them held, if another has one.

        Raises:
            LeaseError: the lease directory cannot be used.
        """
        numbers = tuple(numbers)
        fd = self.directory.open(self._name, (max(numbers) + 1) * _ROOM)
        try:
            if all(lock_bytes(fd, _LOCKS + number) for number in numbers) and self.directory.is_still(fd, self._name):
                self.write(fd, numbers, Holding(party, "held"))
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        return None

    def write(self, fd: int, numbers: Iterable[int], holding: Holding) -> None:
        """Writes down what became of `numbers`, which the open file of `fd` holds or nobody does.

        Raises:
            LeaseError: the lease directory cannot be used.
        """
        text = to_bytes(holding.party, _ROOM, state=holding.state, reason=holding.reason[:_LONGEST_REASON])
        with self.directory.usable():
            for number in numbers:
                os.pwrite(fd, text, number * _ROOM)

    def read(self, numbers: Iterable[int]) -> dict[int, Holding]:
        """What was last written of each of `numbers`; it may be long out of date where nobody holds one."""
        fd = self.directory.open_to_read(self._name)
        if fd is None:
            return {}
        try:
            found = {number: _holding(os.pread(fd, _ROOM, number * _ROOM)) for number in numbers}
        finally:
            os.close(fd)
        return {number: holding for number, holding in found.items() if holding is not None}

    def judge(self, verdicts: Mapping[int, str | None]) -> None:
        """Writes down of NPUs that nobody holds why they are not fit for the next; None says that they are.

        Raises:
            LeaseError: the lease directory cannot be used.
        """
        last = self.read(verdicts)
        fd = self.directory.open(self._name, 0)
        try:
            for number, holding in last.items():
                reason = verdicts[number]
                state: State = "released" if reason is None else "suspect"
                self.write(fd, [number], Holding(holding.party, state, reason or ""))
        finally:
            os.close(fd)


def _holding(raw: bytes) -> Holding | None:
    read = from_bytes(raw)
    if read is None:
        return None
    party, more = read
    state, reason = more.get("state"), more.get("reason")
    return Holding(party, state, str(reason or "")) if state in ("held", "released", "suspect") else None
