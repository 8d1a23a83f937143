"""Which NPUs a process finds, in what state, and how CANN counts them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from triton_dist.devices import npu_smi
from triton_dist.devices.survey import Survey, survey
from triton_dist.devices.visible import VisibleDevicesError, as_text, parse_numbers
from triton_dist.runtime import backend

from .host import Host, output
from .tables import Chip, info


def numbers(found: Survey) -> list[tuple[int, int | None]]:
    return [(npu.physical, npu.logical) for npu in found.npus]


def test_no_node_is_no_npu_whatever_npu_smi_says(host: Host) -> None:
    host.npu_smi(output("a2-8x910b3"))
    assert survey() == Survey()
    assert not backend.has_npus()


def test_eight_a2(host: Host) -> None:
    host.a2()
    found = survey()
    assert backend.has_npus()
    assert backend.active() == "ascend"
    assert numbers(found) == [(npu, npu) for npu in range(8)]
    assert {npu.soc for npu in found.npus} == {"Ascend910B3"}
    assert {npu.physical: npu.defect for npu in found.npus if npu.defect} == {6: "its health is Warning"}
    assert {npu.physical: npu.busy for npu in found.npus if npu.busy} == {5: "python3 218344, 38 GB"}
    assert found.notes == ()


def test_a3_counts_chips(host: Host) -> None:
    host.a3()
    found = survey()
    assert numbers(found) == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert {npu.soc for npu in found.npus} == {"Ascend910"}
    assert found.links.best_group({0, 1, 2, 3}, 2) == (0, 1)
    assert found.links.best_group({1, 2, 3}, 2) == (2, 3)


def test_a_container_with_some_nodes_of_a_host_that_shows_all(host: Host) -> None:
    host.nodes([2, 4, 7])
    host.npu_smi(output("a2-8x910b3"))
    assert numbers(survey()) == [(2, 0), (4, 1), (7, 2)]


def test_a_container_that_shows_only_its_own(host: Host) -> None:
    host.nodes([4, 5])
    host.npu_smi(info([Chip(4), Chip(5)]))
    assert numbers(survey()) == [(4, 0), (5, 1)]


def test_the_drivers_mapping_gives_order_and_soc(host: Host) -> None:
    host.nodes([0, 1])
    host.npu_smi(
        info([Chip(0, name="Ascend910"), Chip(1, name="Ascend910")]),
        mapping="NPU ID   Chip ID   Chip Logic ID   Chip Name\n0   0   1   Ascend 910B3\n1   0   0   Ascend 910B3\n",
    )
    found = survey()
    assert numbers(found) == [(0, 1), (1, 0)]
    assert {npu.soc for npu in found.npus} == {"Ascend910B3"}


def test_ids_that_are_slots_are_told_by_the_device_column(host: Host) -> None:
    host.nodes([0, 1])
    host.npu_smi(info([Chip(2, phy=0), Chip(5, phy=1, health="Alarm")], column="Device"))
    found = survey()
    assert numbers(found) == [(0, 0), (1, 1)]
    assert found.npus[1].defect == "its health is Alarm"


def test_two_chips_an_id_without_a_column_count_in_order(host: Host) -> None:
    host.nodes(range(4))
    host.npu_smi(info([Chip(0, 0), Chip(0, 1), Chip(1, 0), Chip(1, 1, health="Warning")]))
    assert [npu.defect for npu in survey().npus] == [None, None, None, "its health is Warning"]


def test_chips_that_cannot_be_told_from_each_other_are_not_used(host: Host) -> None:
    host.nodes([3])
    host.npu_smi(info([Chip(0, 0), Chip(0, 1)]))
    found = survey()
    assert [npu.defect for npu in found.npus] == ["npu-smi does not list it"]
    assert "NPU 0 chip 1 of `npu-smi info` is not used" in found.notes[1]


def test_an_npu_that_fell_off_the_bus_has_no_logical_number(host: Host) -> None:
    host.nodes(range(3))
    host.npu_smi(info([Chip(0), Chip(2)]))
    found = survey()
    assert numbers(found) == [(0, 0), (1, None), (2, 1)]
    assert found.npus[1].defect == "npu-smi does not list it"


@pytest.mark.parametrize(
    ("container", "process", "expected"),
    [
        ("4-7", None, [(4, 0), (5, 1), (6, 2), (7, 3)]),
        (None, "6,7", [(6, 6), (7, 7)]),
        ("4-7", "1,2", [(5, 1), (6, 2)]),
        ("1,3,Ascend910-5", "2", [(5, 2)]),
        ("all", "3,1", [(1, 1), (3, 3)]),
        ("void", None, []),
        ("0-3,12", None, [(0, 0), (1, 1), (2, 2), (3, 3)]),
    ],
)
def test_visible_devices_compose(
    host: Host,
    monkeypatch: pytest.MonkeyPatch,
    container: str | None,
    process: str | None,
    expected: list[tuple[int, int]],
) -> None:
    host.nodes(range(8))
    host.npu_smi(info([Chip(npu) for npu in range(8)]))
    if container:
        monkeypatch.setenv("ASCEND_VISIBLE_DEVICES", container)
    if process:
        monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", process)
    found = survey()
    assert numbers(found) == expected
    assert found.notes == ()


@pytest.mark.parametrize("value", ["1,3,8,2", "1,3,-1,2", "1,3, 2", "1,3,x", "1,3,1", "1,3,"])
def test_logical_numbers_are_read_up_to_the_first_invalid_one(
    host: Host, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    host.nodes(range(8))
    host.npu_smi(info([Chip(npu) for npu in range(8)]))
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", value)
    found = survey()
    assert numbers(found) == [(1, 1), (3, 3)]
    (note,) = found.notes
    assert f"ASCEND_RT_VISIBLE_DEVICES={value!r} is read up to" in note


def test_a_container_list_that_is_none_is_one_line(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.a2()
    monkeypatch.setenv("ASCEND_VISIBLE_DEVICES", "0-3,five")
    with pytest.raises(VisibleDevicesError, match=r"ASCEND_VISIBLE_DEVICES=0-3,five is not allowed: 'five' is neither"):
        survey()


def test_lists_of_numbers() -> None:
    assert parse_numbers("0,2,5-7", "x") == {0, 2, 5, 6, 7}
    assert as_text((0, 2, 5, 6, 7)) == "0,2,5-7"
    for wrong in ("", "7-5", "1-", "-1", "1,,2"):
        with pytest.raises(VisibleDevicesError):
            parse_numbers(wrong, "x")


@pytest.mark.parametrize(
    ("chip", "busy"),
    [
        (Chip(0, used=4000), None),
        (Chip(0, used=20000), "a process that npu-smi does not show, 20 GB"),
        (Chip(0, used=6000, total=131072), None),
        (Chip(0, aicore=40), "a process that npu-smi does not show, AI cores at 40 %"),
    ],
)
def test_load_tells_of_processes_in_other_containers(host: Host, chip: Chip, busy: str | None) -> None:
    host.nodes([0])
    host.npu_smi(info([chip]))
    assert survey().npus[0].busy == busy


@pytest.mark.parametrize(
    ("body", "note"),
    [
        ("exit 3", "`npu-smi info` failed (exit status 3): it printed nothing"),
        ("echo garbage", "`npu-smi info` printed a line that is not understood: 'garbage'"),
        ("sleep 1000", "`npu-smi info` had not answered after 0.3 s and was killed"),
        (":", "`npu-smi info` shows no NPU"),
    ],
    ids=["fails", "garbage", "hangs", "silent"],
)
def test_without_an_answer_the_nodes_are_used_and_the_user_told(
    host: Host, monkeypatch: pytest.MonkeyPatch, body: str, note: str
) -> None:
    monkeypatch.setenv("TRITON_DIST_NPU_SMI_TIMEOUT", "0.3")
    host.nodes([1, 3])
    host.npu_smi_script(body)
    found = survey()
    assert numbers(found) == [(1, 0), (3, 1)]
    assert {(npu.health, npu.soc, npu.defect, npu.busy) for npu in found.npus} == {("unknown", "unknown", None, None)}
    assert found.notes[0].startswith(note)
    assert "all device nodes are used" in found.notes[-1]


def test_without_npu_smi(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npu_smi, "_USUAL_PLACES", ())
    host.nodes([0])
    found = survey()
    assert numbers(found) == [(0, 0)]
    assert found.notes[0].startswith("npu-smi is not installed")


def test_many_strange_lines_are_summed_up(host: Host) -> None:
    host.nodes([0])
    host.npu_smi(info([Chip(0)]) + "huh\n" * 9)
    found = survey()
    assert len(found.notes) == 4
    assert found.notes[-1] == "`npu-smi info` printed 6 more such lines"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start processes of another user")
def test_nodes_that_this_user_may_not_open(host: Host) -> None:
    host.nodes([0])
    code = (
        "from triton_dist.devices import nodes; import os, pathlib; os.setuid(65534); "
        "print(nodes.can_be_opened(0), nodes.physical_ids())"
    )
    for folder in (host.npu_smi_file.parents[1], *host.npu_smi_file.parents[2:]):
        if folder.parent != folder and folder.stat().st_mode & 0o700 == 0o700:
            # pytest keeps its folders to itself.
            folder.chmod(folder.stat().st_mode | 0o011)
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout == "False (0,)\n"


def test_a_survey_survives_the_way_to_another_process(host: Host) -> None:
    host.a2()
    found = survey()
    assert Survey.from_plain(json.loads(json.dumps(found.to_plain()))) == found
