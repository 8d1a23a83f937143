"""What an interpreted program can wait for."""

from __future__ import annotations

import operator
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from triton_dist.runtime import native
from triton_dist.runtime.job import CollectiveWait, Job
from triton_dist.runtime.status_page import CollectiveCall

if TYPE_CHECKING:
    from triton_dist.interpreter.turns import Launch

# By aclshmem's numbers.
_COMPARES = (operator.eq, operator.ne, operator.gt, operator.ge, operator.lt, operator.le)
_SIGNS = ("==", "!=", ">", ">=", "<", "<=")


# By tdist_wait_kind.
_WAIT_WORD, _WAIT_GRID, _WAIT_HOST_BARRIER = 1, 2, 4


def _field(text: str | None, size: int) -> bytes:
    """A text for a field of `size` bytes with a NUL at its end; one that is too long loses its beginning."""
    return (text or "").encode()[-(size - 1) :]


class Wait(ABC):
    """A condition that other programs or ranks bring about.

    Attributes:
        primitive: what the kernel calls.
        job: the job that the kernel runs in.
        is_barrier: whether all programs of the launch meet in it.
    """

    is_barrier = False

    def __init__(self, primitive: str, job: Job) -> None:
        self.primitive = primitive
        self.job = job
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

    @abstractmethod
    def kind(self) -> tuple[int, int]:
        """Of the record that stands for it in the table of all ranks' waits: its `kind`, and its `epoch`."""

    def record(self, description: dict[str, Any]) -> bytes:
        """That record, a native.WAIT_RECORD, from an item of `describe_waits`."""
        kind, epoch = self.kind()
        get = description.get
        return native.WAIT_RECORD.pack(
            *(kind, 0, *description["program"], description["line"], int(self._since * 1e9), description["queued"]),
            *(get("address") or 0, -1 if get("pe_offset") is None else description["pe_offset"], get("width", 0)),
            *(_SIGNS.index(description["compare"]), description["index"], description["count"]),
            *(description["wanted"], description["has"], epoch, 0, b""),
            *(_field(description[name], size) for name, size in (("primitive", 32), ("kernel", 128), ("file", 200))),
        )

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
        if not self.job.poll_word(address, width, self._compare, self._wanted, slice_ns):
            return False
        # The poll has acquired. The word may have changed since, to a value that is as good if it compares too.
        self.seen = self.job.heap.word(address, width)
        return _COMPARES[self._compare](self.seen, self._wanted) or self._poll(0)

    def fail_if_alone(self, place: str) -> None:
        self.job.fail_if_alone(f"{self.primitive} of {place}", lambda _: self.is_over(), None, may_be_stuck=False)

    def kind(self) -> tuple[int, int]:
        return _WAIT_WORD, 0

    def describe(self) -> dict[str, Any]:
        return {
            **super().describe(),
            "address": self._address,
            "pe_offset": self._address - self.job.heap.base,
            "compare": _SIGNS[self._compare],
            "wanted": self._wanted,
            "has": self.job.heap.word(self._address, self._width),
            "index": self._index,
            "count": self._count,
            "width": self._width,
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
            self._crossing.fail_if_alone(f"{self.primitive} of {place}", may_be_stuck=False)

    def kind(self) -> tuple[int, int]:
        return (_WAIT_GRID, 0) if self._crossing is None else (_WAIT_HOST_BARRIER, self._crossing.ticket)

    def describe(self) -> dict[str, Any]:
        return {
            **super().describe(),
            "address": None,
            "pe_offset": None,
            "compare": ">=",
            "wanted": self.job.world_size if self._crossing is not None else self._launch.programs,
            "has": 0 if self._crossing is not None else self._launch.gathered,
            "index": 0,
            "count": 1,
            "missing_pes": None,
        }
