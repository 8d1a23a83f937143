"""Temporary directories: gone with their process, or with the next one that makes some."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from triton_dist import env
from triton_dist.compiler import scratch

HOLDER = """
from triton_dist.compiler import scratch
with scratch.directory() as directory:
    (directory / "file").touch()
    print(directory, flush=True)
    input()
"""


def holder(temporary: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process that has a directory, and which."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        env=env.child_environ(TMPDIR=temporary),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_what_killed_processes_leave_goes_with_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "with a space"
    temporary.mkdir()
    (temporary / "triton-dist-0").mkdir()
    killed, left = holder(temporary)
    alive, kept = holder(temporary)
    killed.kill()
    killed.communicate()
    assert (left / "file").exists()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    scratch.sweep.cache_clear()
    with scratch.directory() as own:
        assert own.parent == temporary
        assert not left.exists()
        assert (kept / "file").exists()
    assert sorted(temporary.iterdir()) == sorted([kept, temporary / "triton-dist-0"])
    alive.communicate("\n")
    assert not kept.exists()
