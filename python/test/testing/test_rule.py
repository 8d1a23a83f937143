"""Whose turn it is: nobody starves, and nothing idles for somebody without need."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from triton_dist.testing.leases.rule import Request, left_for, passed_by

NPUS = 8


@dataclass
class Model:
    """NPUs and a line without files: requests look in any order, holders end in any order."""

    waiting: dict[int, Request] = field(default_factory=dict)
    holders: dict[int, frozenset[int]] = field(default_factory=dict)
    # Of each request: how many later ones got NPUs that it might have had, before it got its own.
    overtaken: dict[int, int] = field(default_factory=dict)
    tickets: int = 0

    @property
    def free(self) -> frozenset[int]:
        return frozenset(range(NPUS)).difference(*self.holders.values())

    def join(self, npus: frozenset[int], count: int) -> None:
        self.waiting[self.tickets] = Request(self.tickets, "sim", npus, count)
        self.overtaken[self.tickets] = 0
        self.tickets += 1

    def look(self, ticket: int) -> bool:
        """Whether it was the turn of `ticket`, which has its NPUs then."""
        request = self.waiting[ticket]
        ahead = [self.waiting[other] for other in sorted(self.waiting) if other < ticket]
        left = left_for(request, ahead, self.free)
        assert left <= self.free & request.npus
        if len(left) < request.count:
            return False
        taken = frozenset(sorted(left)[: request.count])
        for other in passed_by(taken, ahead):
            self.waiting[other.ticket] = replace(other, passed=other.passed + 1)
        for other in ahead:
            self.overtaken[other.ticket] += bool(other.npus & taken)
        del self.waiting[ticket]
        self.holders[ticket] = taken
        return True

    def check(self) -> None:
        """What holds when everybody has looked and nobody had a turn."""
        assert all(count <= NPUS for count in self.overtaken.values())
        for ticket, request in self.waiting.items():
            if len(self.free & request.npus) < request.count:
                continue
            # NPUs idle only for one that has been passed as often as it may be.
            exhausted = [o for o in self.waiting.values() if o.ticket < ticket and o.passed >= o.most_passes]
            assert any(other.npus & request.npus for other in exhausted)


REQUESTS = st.tuples(st.sets(st.integers(0, NPUS - 1), min_size=1).map(frozenset), st.integers(1, NPUS)).map(
    lambda drawn: (drawn[0], min(drawn[1], len(drawn[0])))
)
ALL = frozenset(range(NPUS))
STEPS = st.one_of(
    REQUESTS, st.sampled_from([1, 2, 4, 8]).map(lambda count: (ALL, count)), st.integers(0, 63).map(lambda n: n)
)


@given(steps=st.lists(STEPS, max_size=60), order=st.randoms(use_true_random=False))
def test_nobody_starves_and_nothing_idles_without_need(
    steps: list[tuple[frozenset[int], int] | int], order: object
) -> None:
    model = Model()

    def settle() -> None:
        while True:
            tickets = sorted(model.waiting)
            order.shuffle(tickets)  # type: ignore[attr-defined]
            if not [ticket for ticket in tickets if model.look(ticket)]:
                break
        model.check()

    for step in steps:
        if not isinstance(step, int):
            model.join(*step)
        elif model.holders:
            model.holders.pop(sorted(model.holders)[step % len(model.holders)])
        settle()
    while model.waiting:
        assert model.holders, "NPUs are free, and nobody gets them"
        model.holders.pop(min(model.holders))
        settle()


def test_small_ones_do_not_keep_a_large_one_waiting_for_ever() -> None:
    model = Model()
    for _ in range(4):
        model.join(ALL, 2)
        assert model.look(model.tickets - 1)
    model.join(ALL, 8)
    large = model.tickets - 1
    passed = 0
    while not model.look(large):
        # One of the small ones ends, and another is there at once.
        model.holders.pop(min(model.holders))
        model.join(ALL, 2)
        if model.look(model.tickets - 1):
            passed += 1
        elif not model.holders:
            assert model.look(large)
            break
    assert passed == NPUS


def test_others_use_meanwhile_what_a_large_one_cannot_use_yet() -> None:
    model = Model()
    model.join(ALL, 1)
    assert model.look(0)
    model.join(ALL, 8)
    model.join(ALL, 4)
    assert not model.look(1)
    assert model.look(2)


def test_who_can_be_served_is_not_overtaken() -> None:
    first, second = Request(0, "sim", ALL, 6), Request(1, "sim", ALL, 3)
    assert len(left_for(second, [first], ALL)) == 2
    assert left_for(second, [first], frozenset(range(5))) == frozenset(range(5))


def test_others_need_not_wait_for_npus_that_they_do_not_share() -> None:
    first = Request(0, "sim", frozenset({0, 1}), 2, passed=2)
    second = Request(1, "sim", frozenset({1, 2, 3}), 2)
    assert left_for(second, [first], frozenset({1, 2, 3})) == {2, 3}
