"""Whose turn it is: first come, first served, with bounded overtaking.

A request may pass others that came before it, but only to NPUs that these cannot use now, and each request is passed
as many times as it has NPUs to choose from, no more: once it has been, NPUs that it may have are kept for it as they
become free. So NPUs do not idle for a large request, and yet it has its turn after a bounded number of others,
whatever comes after it.

In short, for a request R and the requests before it, oldest first:
  * one that has been passed as often as it may be: all NPUs that it may have are kept for it;
  * one that can be served now, and will be as soon as it looks: so many NPUs are kept for it as it wants;
  * any other: nothing is kept for it, and it is passed if R takes NPUs that it might have had.
R may have what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Request:
    """A place in the waiting line.

    Attributes:
        ticket: smaller than those of all that came later.
        kind: of the NPUs, "sim" or "npu".
        npus: the numbers that it may have.
        count: how many of these it wants.
        passed: how often later requests have taken NPUs that it might have had.
    """

    ticket: int
    kind: str
    npus: frozenset[int]
    count: int
    passed: int = 0

    @property
    def most_passes(self) -> int:
        return len(self.npus)


def left_for(request: Request, ahead: Sequence[Request], free: frozenset[int]) -> frozenset[int]:
    """The NPUs that `request` may choose from now: too few of them means that it has to wait.

    Args:
        request: whose turn it may be.
        ahead: requests for NPUs of the same kind that came before it, oldest first.
        free: NPUs that nobody has, of all that these requests may have.
    """
    left = free
    for other in ahead:
        usable = left & other.npus
        if other.passed >= other.most_passes:
            left -= other.npus
        elif len(usable) >= other.count:
            # Which ones it will take does not matter, as long as so many are there.
            kept = sorted(usable, key=lambda npu: (npu in request.npus, npu))[: other.count]
            left -= frozenset(kept)
    return left & request.npus


def passed_by(taken: frozenset[int], ahead: Sequence[Request]) -> list[Request]:
    """Those of `ahead` that are passed when a later request takes the NPUs `taken`."""
    return [other for other in ahead if other.npus & taken]
