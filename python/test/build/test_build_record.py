"""A build says what it was made from, and is taken for done only with the same inputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from nox.command import CommandFailed

from _build_backend import checkout, settings
from ci import build_record, fewer_jobs

SETTINGS = settings.BuildSettings("Release", {"A": "1", "B": "2"}, ("-DC=3",), 2, False, "as tests have it")


@pytest.fixture
def native(tmp_path: Path) -> Path:
    (tmp_path / "native" / "bin").mkdir(parents=True)
    (tmp_path / "native" / "bin" / "tool").write_bytes(b"\x7fELF")
    return tmp_path / "native"


def test_what_a_record_says(tmp_path: Path, native: Path) -> None:
    record = build_record.BuildRecord(tmp_path, "cpython-311", "Release")
    inputs = build_record.inputs(SETTINGS, "/environment")
    record.write(inputs, SETTINGS, native, {"csrc": 1.25})
    written = json.loads(record.path.read_text())
    assert written["pins"]["toolchain"] == checkout.versions()["toolchain"]
    assert written["flags"] == {"build_type": "Release", "defines": {"A": "1", "B": "2"}, "arguments": ["-DC=3"]}
    assert list(written["results"]) == ["bin/tool"]
    assert written["seconds"] == {"csrc": 1.2}
    assert len(written["sources"]) == 64
    assert "python/_build_backend/settings.py" in written["inputs"]


def test_it_names_the_inputs_that_changed(tmp_path: Path, native: Path) -> None:
    record = build_record.BuildRecord(tmp_path, "cpython-311", "Release")
    inputs = build_record.inputs(SETTINGS, "/environment")
    assert record.changes(inputs) == sorted(inputs)
    record.write(inputs, SETTINGS, native, {})
    assert record.changes(inputs) == []
    other = settings.BuildSettings("Release", {"A": "9"}, ("-DC=3",), 8, True, "else")
    assert record.changes(build_record.inputs(other, "/environment")) == ["define A", "define B"]
    assert record.changes(build_record.inputs(SETTINGS, "/another")) == ["environment"]
    assert build_record.BuildRecord(tmp_path, "cpython-310", "Release").changes(inputs) == sorted(inputs)
    # A build that was broken off has no record, and half of one is none.
    record.path.write_text(record.path.read_text()[:100])
    assert record.changes(inputs) == sorted(inputs)
    record.forget()
    assert record.read() == {}


class Machine:
    """A build that is killed for memory while it runs more than `enough` jobs."""

    def __init__(self, enough: int, *, kernel: bool = True) -> None:
        self.kills, self.jobs = 3, list[int]()
        self._enough, self._kernel = enough, kernel

    def attempt(self, jobs: int) -> None:
        self.jobs.append(jobs)
        if jobs > self._enough:
            self.kills += self._kernel
            raise CommandFailed("ninja: build stopped")


def test_a_build_that_ran_out_of_memory_goes_on_with_fewer_jobs() -> None:
    machine = Machine(enough=2)
    fewer_jobs.retry(machine.attempt, 16, lambda: machine.kills)
    assert machine.jobs == [16, 8, 4, 2]
    hopeless = Machine(enough=0)
    with pytest.raises(CommandFailed):
        fewer_jobs.retry(hopeless.attempt, 4, lambda: hopeless.kills)
    assert hopeless.jobs == [4, 2, 1]


def test_any_other_failure_is_final() -> None:
    machine = Machine(enough=0, kernel=False)
    with pytest.raises(CommandFailed):
        fewer_jobs.retry(machine.attempt, 16, lambda: machine.kills)
    assert machine.jobs == [16]
    assert fewer_jobs.kills() >= 0
