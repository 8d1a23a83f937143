"""What an interpreted program can wait for."""

from __future__ import annotations

import operator
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from triton_dist.runtime.job import CollectiveWait, Job
from triton_dist.runtime.status_page import CollectiveCall

if TYPE_CHECKING:
    from triton_dist.interpreter.turns import Launch

# By aclshmem's numbers.
_COMPARES = (operator.eq, operator.ne, operator.gt, operator.ge, operator.lt, operator.le)
_SIGNS = ("==", "!=", ">", ">=", "<", "<=")


class Wait(ABC):
    """A condition that other programs or ranks bring about.

    Attributes:
        primitive: what the kernel calls.
        is_barrier: whether all programs of the launch meet in it.
    """

    is_barrier = False

    def __init__(self, primitive: str, job: Job) -> None:
        self.primitive = primitive
        self._job = job
        self._since = time.monotonic()

    @abstractmethod
    def is_over(self) -> bool:
        """Whether the program can go on. Acquires what was written before."""

    @abstractmethod
    def sleep(self, slice_ns: int) -> bool:
        """Sleeps until it may be over, at most `slice_ns` nanoseconds. Whether anything has happened."""

    @abstractmethod
    def fail_if_alone(self, place: str) -> None:
        """Raises PeerGoneError if the ranks that could end the wait have ended themselves."""

    def describe(self) -> dict[str, Any]:
        """The wait's part of an item of tdist_rt_describe_waits."""
        return {"primitive": self.primitive, "seconds": time.monotonic() - self._since}


class WordWait(Wait):
    """Words of this rank's heap, `stride` bytes apart, each to be seen once as wanted, one by one.

    Attributes:
        seen: a value of the last word that compared as wanted.
    """

    def __init__(
        self, primitive: str, job: Job, address: int, width: int, count: int, stride: int, compare: int, wanted: int
    ) -> None:
        """`width` of a word is in bytes; `wanted` is signed.

        Raises:
            ValueError: the words are not in the symmetric heap.
        """
        super().__init__(primitive, job)
        if count < 0:
            raise ValueError(f"{primitive}: numBarriers is {count}: expected 0 or more")
        if count:
            job.heap.check_range(address, (count - 1) * stride + width, job.rank, primitive, align=width)
        self._base, self._width, self._count, self._stride = address, width, count, stride
        self._compare, self._wanted = compare, wanted
        self._index = 0
        self.seen = 0

    @property
    def _address(self) -> int:
        return self._base + self._index * self._stride

    def is_over(self) -> bool:
        return self._advance(0) and self._index == self._count

    def sleep(self, slice_ns: int) -> bool:
        return self._advance(slice_ns)

    def _advance(self, slice_ns: int) -> bool:
        """Moves over words that are as wanted. Whether there was one, or none is left."""
        before = self._index
        while self._index < self._count and self._poll(slice_ns):
            self._index += 1
        return self._index > before or self._index == self._count

    def _poll(self, slice_ns: int) -> bool:
        address, width = self._address, self._width
        if not self._job.poll_word(address, width, self._compare, self._wanted, slice_ns):
            return False
        # The poll has acquired. The word may have changed since, to a value that is as good if it compares too.
        self.seen = self._job.heap.word(address, width)
        return _COMPARES[self._compare](self.seen, self._wanted) or self._poll(0)

    def fail_if_alone(self, place: str) -> None:
        self._job.fail_if_alone(f"{self.primitive} of {place}", lambda _: self.is_over(), None)

    def describe(self) -> dict[str, Any]:
        return {
            **super().describe(),
            "address": self._address,
            "pe_offset": self._address - self._job.heap.base,
            "compare": _SIGNS[self._compare],
            "wanted": self._wanted,
            "has": self._job.heap.word(self._address, self._width),
            "index": self._index,
            "count": self._count,
            "missing_pes": None,
        }


class BarrierWait(Wait):
    """All programs of the launch gather, then this rank meets the others."""

    is_barrier = True

    def __init__(self, primitive: str, job: Job, launch: Launch) -> None:
        """Arrives.

        Raises:
            RuntimeError: the barrier can never be passed.
        """
        super().__init__(primitive, job)
        launch.check_barrier(primitive)
        self._launch = launch
        self._passage = launch.passages
        launch.gathered += 1
        self._crossing: CollectiveWait | None = None
        if launch.gathered == launch.programs:
            self._crossing = job.arrive(CollectiveCall(f"{primitive} of a kernel"))

    def is_over(self) -> bool:
        if self._passage == self._launch.passages and self._crossing is not None and self._crossing.is_over(0):
            self._launch.gathered = 0
            self._launch.passages += 1
        return self._passage != self._launch.passages

    def sleep(self, slice_ns: int) -> bool:
        return self._crossing is not None and self._crossing.is_over(slice_ns)

    def fail_if_alone(self, place: str) -> None:
        if self._crossing is not None:
            self._crossing.fail_if_alone(f"{self.primitive} of {place}")

    def describe(self) -> dict[str, Any]:
        return {
            **super().describe(),
            "address": None,
            "pe_offset": None,
            "compare": ">=",
            "wanted": self._job.world_size if self._crossing is not None else self._launch.programs,
            "has": 0 if self._crossing is not None else self._launch.gathered,
            "index": 0,
            "count": 1,
            "missing_pes": None,
        }
