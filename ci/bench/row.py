"""One line of the benchmark: a number, and what it is held against."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """A measured number.

    Attributes:
        name: what is measured; selections name it, or what it begins with.
        value: the number, a median.
        unit: its unit.
        peer: what it is held against.
        peer_value: that one's number, in the same unit.
        goal: in words.
        most: the goal: value / peer_value must not be above it; None where growth is only shown.
        ok: whether the goal is met; derived unless given.
    """

    name: str
    value: float
    unit: str
    peer: str
    peer_value: float
    goal: str
    most: float | None = None
    met: bool | None = None

    @property
    def ratio(self) -> float:
        """Value in peers."""
        return self.value / self.peer_value if self.peer_value else float("inf")

    @property
    def ok(self) -> bool:
        """Whether the goal is met."""
        if self.met is not None:
            return self.met
        return self.most is None or self.ratio <= self.most

    def as_json(self) -> dict[str, Any]:
        """The row as the benchmark's file has it."""
        kept = {key: value for key, value in asdict(self).items() if key not in ("most", "met")}
        return {**kept, "ratio": self.ratio, "ok": self.ok}


@dataclass(frozen=True)
class Context:
    """What rows are measured with.

    Attributes:
        programs: directory of the C++ programs they are held against.
        repetitions: how often each side is measured.
    """

    programs: Path
    repetitions: int


def interleaved(repetitions: int, *sides: Callable[[], float]) -> list[float]:
    """The median of each side. They take turns, so that what the machine does besides hits all of them alike."""
    samples = [[side() for side in sides] for _ in range(repetitions)]
    return [statistics.median(column) for column in zip(*samples, strict=True)]
