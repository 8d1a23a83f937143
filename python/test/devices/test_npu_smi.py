"""Asking an npu-smi that does what it likes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from triton_dist.devices import npu_smi
from triton_dist.devices.npu_smi import NpuSmiError, NpuSmiMissingError

from .host import Host


def test_arguments_go_in_and_the_output_comes_back(host: Host) -> None:
    host.npu_smi_script('echo "asked: $*"; echo problem >&2')
    assert npu_smi.ask("info", "-t", "topo") == "asked: info -t topo\nproblem\n"


def test_questions_are_answered_each_on_its_own(host: Host) -> None:
    host.npu_smi("fine")
    info, mapping = npu_smi.ask_all(("info",), ("info", "-m"))
    assert info == "fine"
    assert str(mapping) == "`npu-smi info -m` failed (exit status 1): unknown question"


def test_missing(host: Host, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(npu_smi, "_USUAL_PLACES", ())
    with pytest.raises(NpuSmiMissingError, match="npu-smi is not installed"):
        npu_smi.ask("info")


def test_a_hanging_one_is_killed_with_its_children(host: Host, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRITON_DIST_NPU_SMI_TIMEOUT", "0.3")
    pids = tmp_path / "pids"
    host.npu_smi_script(f"trap '' TERM INT\nsleep 1000 &\necho $$ $! > {pids}\nwait")
    with pytest.raises(NpuSmiError, match=r"`npu-smi info` had not answered after 0.3 s and was killed"):
        npu_smi.ask("info")
    deadline = time.monotonic() + 60
    for pid in map(int, pids.read_text().split()):
        while _runs(pid):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_one_that_goes_on_after_it_closed_its_output_is_killed(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DIST_NPU_SMI_TIMEOUT", "0.3")
    host.npu_smi_script("exec >&- 2>&-\nsleep 1000")
    with pytest.raises(NpuSmiError, match="had not answered"):
        npu_smi.ask("info")


def test_one_that_never_stops_printing_is_killed(host: Host) -> None:
    host.npu_smi_script("exec yes NPU")
    with pytest.raises(NpuSmiError, match=r"printed more than 1 MiB and was killed"):
        npu_smi.ask("info")


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (
            "echo; echo 'dcmi module initialize failed. ret is -8005'; exit 255",
            r"exit status 255\): dcmi module .*8005",
        ),
        ("kill -SEGV $$", r"SIGSEGV\): it printed nothing"),
    ],
)
def test_a_failing_one_is_one_line_with_its_words(host: Host, body: str, complaint: str) -> None:
    host.npu_smi_script(body)
    with pytest.raises(NpuSmiError, match=complaint) as caught:
        npu_smi.ask("info")
    assert "\n" not in str(caught.value)


def test_one_that_may_not_be_run(host: Host) -> None:
    host.npu_smi_file.write_text("#!/bin/sh\n")
    host.npu_smi_file.chmod(0o644)
    with pytest.raises(NpuSmiError, match=f"{host.npu_smi_file} cannot be run .Permission denied"):
        npu_smi.ask("info")


def test_one_that_is_no_program(host: Host) -> None:
    os.symlink("/nowhere", host.npu_smi_file)
    with pytest.raises(NpuSmiError):
        npu_smi.ask("info")
