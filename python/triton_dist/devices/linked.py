"""Chooses groups of NPUs: those that are linked best, and so that what stays free is linked well too."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

# From the two dies of one package down to what crosses the host's sockets.
_WEIGHTS = {"SIO": 100, "HCCS": 60, "HCCS_SW": 50, "PIX": 20, "PXB": 15, "PHB": 10, "SYS": 2}
_SAME_CARD = 30
_SAME_NUMA_NODE = 4


@dataclass(frozen=True)
class Links:
    """How well pairs of NPUs are linked.

    Attributes:
        weights: (smaller, larger number) -> how well; pairs that are not there are not known to be linked.
    """

    weights: dict[tuple[int, int], int] = field(default_factory=dict)

    def between(self, one: int, other: int) -> int:
        return self.weights.get((min(one, other), max(one, other)), 0)

    def best_group(self, free: Collection[int], count: int) -> tuple[int, ...]:
        """`count` of the NPUs `free`, ascending: a group with good links inside, and bad ones to the others.

        Grown from each NPU in turn by the one that adds most; of these groups the best is bettered by exchanging
        single NPUs as long as that helps. The lowest numbers win where groups are equally good.
        """
        if not self.weights:
            return tuple(sorted(free)[:count])
        groups = [self._grown(seed, free, count) for seed in sorted(free)]
        while True:
            group = min(groups, key=lambda group: (-self._quality(group, free), group))
            groups = [group, *self._exchanged(group, free)]
            if min(groups, key=lambda other: -self._quality(other, free)) == group:
                return group

    def _grown(self, seed: int, free: Collection[int], count: int) -> tuple[int, ...]:
        group = [seed]
        left = set(free) - {seed}
        while len(group) < count:
            added = min(left, key=lambda npu: (-self._worth(npu, group, left), npu))
            group.append(added)
            left.remove(added)
        return tuple(sorted(group))

    @staticmethod
    def _exchanged(group: tuple[int, ...], free: Collection[int]) -> list[tuple[int, ...]]:
        """The groups that differ from `group` in one NPU."""
        outside = set(free) - set(group)
        return [tuple(sorted({*group, new} - {old})) for old in group for new in outside]

    def _worth(self, npu: int, group: Iterable[int], left: Iterable[int]) -> int:
        # Inside counts twice: a link that is cut is no loss where a better one is kept.
        return 2 * self._sum(npu, group) - self._sum(npu, left)

    def _quality(self, group: tuple[int, ...], free: Collection[int]) -> int:
        outside = set(free) - set(group)
        return sum(self._sum(npu, group) - self._sum(npu, outside) for npu in group)

    def _sum(self, npu: int, others: Iterable[int]) -> int:
        return sum(self.between(npu, other) for other in others if other != npu)


def weight(link: str | None, *, same_card: bool, same_numa_node: bool) -> int:
    """How well two NPUs are linked, by the topology's word for it and where they sit."""
    return _WEIGHTS.get(link or "", 0) + (_SAME_CARD if same_card else 0) + (_SAME_NUMA_NODE if same_numa_node else 0)
