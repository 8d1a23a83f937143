"""aclshmem's log: what is written, where, and what its variables change."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import host_api
import light_ranks
import pytest

from triton_dist import env
from triton_dist.shims import shmem as ash

LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} (DEBUG|INFO|WARN|ERROR|FATAL) (\d+) (aclshmem[.\w]*) (\w+\.py):(\d+) (.*)"
)


def say_everything(rank: int, world_size: int) -> tuple[int, list[Any], int]:
    """A job that allocates, and one that fails; returns the process id, and what the root logger has become."""
    host_api.init(rank, world_size, port=8666)
    ash.aclshmem_free(ash.aclshmem_malloc(1000))
    ash.aclshmem_finalize()
    attributes = ash.InitAttr()
    attributes.my_rank, attributes.n_ranks, attributes.local_mem_size = 5, 2, 1 << 20
    attributes.ip_port = "tcp://127.0.0.1:8666"
    assert "rank is 5" in host_api.error(ash.aclshmem_init, attributes)
    return os.getpid(), list(logging.getLogger().handlers), logging.getLogger().level


def run(folder: Path, **environment: str) -> tuple[list[light_ranks.Outcome], list[list[str]]]:
    """The outcomes of two ranks, and the lines that each has written."""
    variables = {"TRITON_DIST_SESSION": light_ranks.new_endpoint(), "SHMEM_LOG_PATH": str(folder), **environment}
    outcomes = light_ranks.run(say_everything, 2, environment=variables)
    files = [folder / f"shmem_{value[0]}.log" for value in light_ranks.values(outcomes)]
    return outcomes, [file.read_text().splitlines() if file.exists() else [] for file in files]


def test_each_rank_writes_lines_of_all_that_matters(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "log"
    outcomes, files = run(folder, SHMEM_LOG_LEVEL="DEBUG")
    for rank, (outcome, lines) in enumerate(zip(outcomes, files, strict=True)):
        found = [LINE.fullmatch(line) for line in lines]
        assert all(found), lines
        said = [match.groups() for match in found if match]
        assert {int(pid) for _, pid, *_ in said} == {outcome.value[0]}
        text = "\n".join(f"{level} {module} {message}" for level, _, module, _, _, message in said)
        assert f"INFO aclshmem rank {rank} of 2 initialises shmem at loopback:8666 in lease" in text
        assert f"INFO aclshmem.rendezvous rank {rank} has met the 2 ranks" in text
        assert re.search(rf"DEBUG aclshmem.heap aclshmem_malloc: rank {rank} has 1000 bytes at offset \d+", text)
        assert f"DEBUG aclshmem.heap aclshmem_free: rank {rank} has given back" in text
        assert f"INFO aclshmem rank {rank} has finalized shmem" in text
        assert "ERROR aclshmem initialisation failed: ValueError: rank is 5" in text
        assert outcome.value[1:] == ([], logging.WARNING)  # the root logger is as it was


def test_errors_only_unless_more_is_asked_for(tmp_path: Path) -> None:
    _, files = run(tmp_path)
    for lines in files:
        assert len(lines) == 1
        assert " ERROR " in lines[0]


def join_and_leave(rank: int, world_size: int) -> None:
    host_api.init(rank, world_size, port=8666)
    ash.aclshmem_finalize()


def test_nothing_is_made_where_nothing_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    environment = {"TRITON_DIST_SESSION": light_ranks.new_endpoint(), "SHMEM_LOG_PATH": str(folder)}
    light_ranks.values(light_ranks.run(join_and_leave, 2, environment=environment))
    assert not folder.exists()


def test_the_console_instead_of_files(tmp_path: Path) -> None:
    program = (
        "from triton_dist.shims import shmem as ash\n"
        "attributes = ash.InitAttr()\n"
        "attributes.ip_port = 'nowhere'\n"
        "try: ash.aclshmem_init(attributes)\n"
        "except ValueError: pass\n"
    )
    environ = env.child_environ(SHMEM_LOG_TO_STDOUT="1", SHMEM_LOG_PATH=tmp_path / "log")
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, env=environ, capture_output=True, text=True, check=True, timeout=60)
    (line,) = result.stdout.splitlines()
    match = LINE.fullmatch(line)
    assert match is not None
    assert (match[1], match[3]) == ("ERROR", "aclshmem")
    assert "ip_port is 'nowhere'" in match[6]
    assert not (tmp_path / "log").exists()


def test_a_folder_that_cannot_be_used_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    outcomes, _ = run(tmp_path / "file" / "log")
    for outcome in outcomes:
        (warning,) = outcome.warnings
        assert "aclshmem's log is not written, its folder cannot be used" in warning
        assert "SHMEM_LOG_PATH" in warning


def test_a_level_that_is_none_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHMEM_LOG_LEVEL", "LOUD")
    with pytest.raises(ValueError, match="SHMEM_LOG_LEVEL='LOUD' is not allowed: it takes one of DEBUG, INFO, WARN"):
        ash.aclshmem_init(ash.InitAttr())


def set_the_level(rank: int, world_size: int) -> int:
    assert ash.set_log_level(1) == 0
    join_and_leave(rank, world_size)
    return os.getpid()


def test_a_level_that_code_sets_wins(tmp_path: Path) -> None:
    environment = {
        "TRITON_DIST_SESSION": light_ranks.new_endpoint(),
        "SHMEM_LOG_LEVEL": "FATAL",
        "SHMEM_LOG_PATH": str(tmp_path),
    }
    (pid,) = light_ranks.values(light_ranks.run(set_the_level, [(0, 1)], environment=environment))
    text = (tmp_path / f"shmem_{pid}.log").read_text()
    assert " INFO " in text
    assert " DEBUG " not in text
