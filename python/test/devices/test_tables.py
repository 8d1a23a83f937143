"""What npu-smi prints, read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_dist.devices.info import ProcessRow, parse_info
from triton_dist.devices.mapping import parse_mapping
from triton_dist.devices.topology import parse_topology

from .host import output
from .tables import Chip, Process, info, topology


def test_eight_a2() -> None:
    table = parse_info(output("a2-8x910b3"))
    assert table.version == "24.1.0"
    assert table.not_understood == ()
    assert [(chip.npu, chip.chip, chip.physical, chip.name) for chip in table.chips] == [
        (npu, 0, None, "910B3") for npu in range(8)
    ]
    assert [chip.health for chip in table.chips] == ["OK"] * 6 + ["Warning", "OK"]
    assert [chip.aicore for chip in table.chips] == [0, 0, 0, 0, 0, 12, 0, 0]
    assert [chip.memory for chip in table.chips][4:6] == [(3378, 65536), (41697, 65536)]
    assert [chip.bus_id for chip in table.chips][:2] == ["0000:C1:00.0", "0000:C2:00.0"]
    assert table.processes == (ProcessRow(5, 0, 218344, "python3", 38361),)


def test_a3_has_two_chips_an_id() -> None:
    table = parse_info(output("a3-2x-dual-die"))
    assert table.not_understood == ()
    assert [(chip.npu, chip.chip, chip.physical) for chip in table.chips] == [
        (0, 0, 0),
        (0, 1, 1),
        (1, 0, 2),
        (1, 1, 3),
    ]
    assert {chip.name for chip in table.chips} == {"Ascend910"}
    assert {chip.memory for chip in table.chips} == {(3131, 65536), (2886, 65536), (3125, 65536), (2890, 65536)}


OLD_LAYOUT = """
+--------------------------------------------------------------------------------+
| npu-smi 22.0.4                     Version: 22.0.4                              |
+-------------------+-----------------+------------------------------------------+
| NPU     Name      | Health          | Power(W)     Temp(C)   Hugepages-Usage(page)|
| Chip    Device    | Bus-Id          | AICore(%)    Memory-Usage(MB)               |
+===================+=================+==========================================+
| 7       310P3     | Alarm           | NA           28        0    / 0             |
| 0       2         | NA              | 3            1805 / 21527                   |
+-------------------+-----------------+------------------------------------------+
"""


def test_a_layout_with_a_device_column_and_one_memory() -> None:
    table = parse_info(OLD_LAYOUT)
    assert table.not_understood == ()
    (chip,) = table.chips
    assert (chip.npu, chip.chip, chip.physical, chip.name, chip.health) == (7, 0, 2, "310P3", "Alarm")
    assert (chip.bus_id, chip.aicore, chip.memory) == (None, 3, (1805, 21527))


@pytest.mark.parametrize(
    "lines",
    [
        ["| 0     910B3               | OK            | 93.7        32                0    / 0             |"],
        ["dcmi module initialize failed. ret is -8005"],
        ["| what | is | this |", "| 0 |"],
    ],
    ids=["half a chip", "a complaint", "unknown cells"],
)
def test_lines_that_make_no_sense_are_handed_back(lines: list[str]) -> None:
    text = output("a2-8x910b3").splitlines()
    table = parse_info("\n".join([*text[:8], *lines, *text[8:]]))
    assert table.not_understood == tuple(lines)
    assert len(table.chips) == 8


def test_a_chip_that_is_shown_twice_counts_once() -> None:
    table = parse_info(info([Chip(0), Chip(1), Chip(0, health="Alarm")]))
    assert [(chip.npu, chip.health) for chip in table.chips] == [(0, "OK"), (1, "OK")]
    assert len(table.not_understood) == 2


NAMES = st.sampled_from(["910B1", "910B3", "Ascend910", "950PR", "310P3"])
CHIPS = st.builds(
    Chip,
    npu=st.integers(0, 63),
    chip=st.integers(0, 3),
    phy=st.none(),
    name=NAMES,
    health=st.sampled_from(["OK", "Warning", "Alarm", "Critical", "UNKNOWN"]),
    used=st.integers(0, 131072),
    total=st.integers(1, 131072),
    aicore=st.integers(0, 100),
)
PROCESSES = st.tuples(
    st.integers(0, 63),
    st.integers(0, 3),
    st.integers(1, 4194304),
    st.from_regex(r"[a-z][a-z0-9_.-]{0,14}", fullmatch=True),
    st.integers(0, 65536),
)
NOISE = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=60).map(
    lambda text: f"? {text}"
)


@given(
    chips=st.lists(CHIPS, max_size=16, unique_by=lambda chip: (chip.npu, chip.chip)),
    processes=st.lists(PROCESSES, max_size=8),
    with_physical=st.booleans(),
    column=st.sampled_from(["Phy-ID", "Device"]),
    cell=st.integers(1, 60),
    pad=st.sampled_from(["", " ", "    "]),
    noise=st.lists(st.tuples(st.integers(0, 200), NOISE), max_size=4),
)
def test_any_table_is_read_and_anything_else_handed_back(
    chips: list[Chip],
    processes: list[Process],
    with_physical: bool,
    column: str,
    cell: int,
    pad: str,
    noise: list[tuple[int, str]],
) -> None:
    if with_physical:
        chips = [Chip(**{**vars(chip), "phy": number}) for number, chip in enumerate(chips)]
    lines = info(chips, processes, column=column, cell=cell, pad=pad).splitlines()
    for position, text in noise:
        lines.insert(position % (len(lines) + 1), text)
    table = parse_info("\n".join(lines))
    assert sorted(table.not_understood) == sorted(text for _, text in noise)
    assert [
        Chip(c.npu, c.chip, c.physical, c.name, c.health, *(c.memory or (0, 0)), c.aicore or 0) for c in table.chips
    ] == chips
    assert [(row.npu, row.chip, row.pid, row.name, row.memory) for row in table.processes] == processes


STRANGE = ["||", "NPU", "Chip", "Phy-ID", "910B3", "OK", "99999999999", "-1", "npu-smi", "Process", "id", "NPU0", "X"]
WORDS = st.sampled_from(
    [*STRANGE, *"|+=/-0123", "HCCS", "Legend:", "Chip Logic ID", "\t", "\n", "\n|", "  ", "0000:C1:00.0", "\u0663"]
)


@given(st.one_of(st.text(), st.lists(WORDS).map(" ".join), st.binary().map(lambda raw: raw.decode(errors="replace"))))
def test_no_text_is_too_strange(text: str) -> None:
    table = parse_info(text)
    # Each line that has more than a rule on it is a chip's, a process's, a header's or a banner's, or handed back.
    assert set(table.not_understood) <= set(text.splitlines())
    used = 2 * len(table.chips) + len(table.processes) + len(table.not_understood)
    assert used <= len([line for line in text.splitlines() if line.strip()])
    assert set(parse_mapping(text).not_understood) <= set(text.splitlines())
    assert set(parse_topology(text).not_understood) <= set(text.splitlines())


@given(NOISE)
def test_a_line_outside_of_tables_is_never_lost(text: str) -> None:
    assert parse_info(text).not_understood == (text,)


def test_the_mapping_tells_chips_from_controllers() -> None:
    mapping = parse_mapping(output("info-m-2x910b3"))
    assert mapping.not_understood == ()
    assert [(chip.npu, chip.chip, chip.logical, chip.name) for chip in mapping.chips] == [
        (0, 0, 0, "Ascend 910B3"),
        (0, 1, None, "Mcu"),
        (1, 0, 1, "Ascend 910B3"),
        (1, 1, None, "Mcu"),
    ]


def test_a_mapping_with_physical_numbers() -> None:
    mapping = parse_mapping(
        "NPU ID   Chip ID   Chip Logic ID   Chip Phy-ID   Chip Name\n4   1   0   9   Ascend910\nsorry\n"
    )
    assert [(chip.npu, chip.chip, chip.logical, chip.physical) for chip in mapping.chips] == [(4, 1, 0, 9)]
    assert mapping.not_understood == ("sorry",)


def test_the_topology_of_eight_a2() -> None:
    read = parse_topology(output("topo-8x910b3"))
    assert read.by == "npu"
    assert read.not_understood == ()
    assert read.links == {(one, other): "HCCS" for one in range(8) for other in range(8) if one != other}
    assert read.cores == {
        **dict.fromkeys((0, 1), "144-167"),
        **dict.fromkeys((2, 3), "96-119"),
        **dict.fromkeys((4, 5), "0-23"),
        **dict.fromkeys((6, 7), "48-71"),
    }


def test_a_topology_by_device_nodes_and_without_cores() -> None:
    read = parse_topology(topology([["X", "SIO"], ["SIO", "X"]], None, label="Phy-ID", first=12) + "\nwhatever\n")
    assert read.by == "phy"
    assert read.links == {(12, 13): "SIO", (13, 12): "SIO"}
    assert read.cores == {}


def test_rows_that_do_not_fit_the_matrix_are_handed_back() -> None:
    text = output("topo-8x910b3").replace("NPU3       HCCS", "NPU3       ")
    assert len(parse_topology(text).not_understood) == 1
