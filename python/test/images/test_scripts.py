"""The scripts that Dockerfiles run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from _build_backend import checkout
from triton_dist import env

SCRIPTS = checkout.ROOT / "docker" / "ascend"


def run(command: list[str | Path], **variables: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=env.child_environ(**variables), capture_output=True, text=True, check=False)


def program(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def test_cann_is_in_effect_in_each_bash_and_once(tmp_path: Path) -> None:
    if any(Path("/usr/local/Ascend").glob("*/set_env.sh")):
        pytest.skip("this machine has a CANN of its own, which comes first")
    script = tmp_path / "Ascend" / "cann" / "set_env.sh"
    script.parent.mkdir(parents=True)
    script.write_text("echo sourced >&2\nexport ASCEND_HOME_PATH=/somewhere\n")
    asked: list[str | Path] = ["bash", "-c", "bash -c 'echo $ASCEND_HOME_PATH'"]
    done = run(asked, HOME=tmp_path, BASH_ENV=SCRIPTS / "cann.sh", ASCEND_HOME_PATH=None)
    assert done.stdout == "/somewhere\n"
    assert done.stderr == "sourced\n"
    # Without a CANN a shell is one like any other.
    done = run(asked, HOME=tmp_path / "empty", BASH_ENV=SCRIPTS / "cann.sh", ASCEND_HOME_PATH=None)
    assert (done.stdout, done.stderr) == ("\n", "")


def test_a_build_gets_its_jobs_and_its_failure_is_passed_on() -> None:
    done = run([SCRIPTS / "keep-going", "sh", "-c", "echo $MAX_JOBS $CMAKE_BUILD_PARALLEL_LEVEL; exit 7"], MAX_JOBS=3)
    assert (done.returncode, done.stdout) == (7, "3 3\n")


def test_sources_are_taken_from_where_they_were_put(tmp_path: Path) -> None:
    given = tmp_path / "given"
    (given / "aclshmem-v9" / "scripts").mkdir(parents=True)
    (given / "aclshmem-v9" / "scripts" / "build.sh").write_text("true\n")
    program(tmp_path / "bin" / "git", "exit 1")
    path = f"{tmp_path / 'bin'}:/usr/bin:/bin"
    (tmp_path / "there").mkdir()
    done = run([SCRIPTS / "sources", "aclshmem", "v9", given, tmp_path / "there"], PATH=path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "there" / "scripts" / "build.sh").is_file()
    done = run([SCRIPTS / "sources", "aclshmem", "v10", given, tmp_path / "other"], PATH=path)
    assert done.returncode == 1
    assert done.stderr.endswith("put its sources into build/sources/aclshmem-v10\n")


def test_an_llvm_that_cannot_be_fetched_is_one_clear_line(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "curl", "exit 6")
    program(tmp_path / "bin" / "mkdir", "exit 0")
    program(tmp_path / "bin" / "tar", "exit 2")
    done = run([SCRIPTS / "llvm", "99.1.0", tmp_path, tmp_path / "prefix"], PATH=f"{tmp_path / 'bin'}:/usr/bin:/bin")
    assert done.returncode == 1
    assert re.fullmatch(r"LLVM 99\.1\.0 cannot be fetched: put llvm-project-99\.1\.0\.src\.tar\.xz .*\n", done.stderr)
