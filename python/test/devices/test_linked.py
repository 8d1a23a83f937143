"""Which NPUs go together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from triton_dist.devices.linked import Links
from triton_dist.devices.survey import survey

from .host import Host
from .tables import Chip, info, topology


def test_pairs_share_a_numa_node(host: Host) -> None:
    host.a2()
    links = survey().links
    assert links.best_group(set(range(8)), 2) == (0, 1)
    assert links.best_group({1, 2, 3, 5}, 2) == (2, 3)
    # One alone takes that whose neighbour is taken already.
    assert links.best_group({0, 1, 2, 4, 5}, 1) == (2,)
    assert links.best_group({0, 1, 3, 4, 5, 6, 7}, 4) in {(0, 1, 4, 5), (0, 1, 6, 7), (4, 5, 6, 7)}


def test_two_meshes_that_pcie_joins(host: Host) -> None:
    rows = [["X" if a == b else "HCCS" if a // 4 == b // 4 else "SYS" for b in range(8)] for a in range(8)]
    host.nodes(range(8))
    host.npu_smi(info([Chip(npu) for npu in range(8)]), topology=topology(rows, None))
    links = survey().links
    assert links.best_group(set(range(8)), 4) == (0, 1, 2, 3)
    assert links.best_group({0, 1, 4, 5, 6, 7}, 4) == (4, 5, 6, 7)
    assert links.best_group({0, 4, 5, 6, 7}, 1) == (0,)


def test_dies_of_a_card_by_device_number(host: Host) -> None:
    rows = [["X" if a == b else "SIO" if a // 2 == b // 2 else "HCCS_SW" for b in range(4)] for a in range(4)]
    host.nodes(range(12, 16))
    host.npu_smi(
        info([Chip(6 + n // 2, n % 2, phy=12 + n) for n in range(4)]),
        topology=topology(rows, None, label="Phy-ID", first=12),
    )
    links = survey().links
    assert links.best_group({13, 14, 15}, 2) == (14, 15)
    assert links.best_group({13, 14, 15}, 1) == (13,)


def test_rows_that_count_chips_are_not_taken_for_cards(host: Host) -> None:
    rows = [["X" if a == b else "SIO" if a // 2 == b // 2 else "HCCS" for b in range(4)] for a in range(4)]
    host.nodes(range(4))
    host.npu_smi(
        info([Chip(n // 2, n % 2, phy=n) for n in range(4)]), topology=topology(rows, ["0-9", "0-9", "10-19", "10-19"])
    )
    assert survey().links.best_group({1, 2, 3}, 2) == (2, 3)


@given(
    weights=st.dictionaries(
        st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda pair: pair[0] < pair[1]), st.integers(1, 100)
    ),
    free=st.sets(st.integers(0, 9), min_size=1),
    data=st.data(),
)
def test_a_group_is_of_the_free_ones_and_the_same_for_all_who_ask(
    weights: dict[tuple[int, int], int], free: set[int], data: st.DataObject
) -> None:
    count = data.draw(st.integers(1, len(free)))
    group = Links(weights).best_group(free, count)
    assert len(set(group)) == count
    assert set(group) <= free
    assert list(group) == sorted(group)
    assert group == Links(weights).best_group(sorted(free, reverse=True), count)
