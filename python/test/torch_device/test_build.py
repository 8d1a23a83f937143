"""How the C++ part of the torch device is built and cached, with a compiler that only writes down its calls."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from triton_dist import env

COMPILER = """#!/bin/sh
echo call >> {log}
{body}
while [ "$1" != -o ]; do shift; done
echo library > "$2"
"""


class Builder:
    """`python -m triton_dist.runtime.torch_device.build` with a cache and a compiler of its own."""

    def __init__(self, directory: Path) -> None:
        self.cache = directory / "cache"
        self.bin = directory / "bin"
        self.log = directory / "calls"
        self.bin.mkdir()
        self.compiler()

    def compiler(self, body: str = "") -> None:
        """Puts a compiler in place that does `body` before it writes its output."""
        path = self.bin / "c++"
        path.write_text(COMPILER.format(log=self.log, body=body))
        path.chmod(0o755)

    def calls(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0

    def start(self, code: str | None = None) -> subprocess.Popen[str]:
        command = ["-m", "triton_dist.runtime.torch_device.build"] if code is None else ["-c", code]
        return subprocess.Popen(
            [sys.executable, *command],
            env=env.child_environ(TRITON_DIST_CACHE_DIR=self.cache, PATH=f"{self.bin}:/usr/bin:/bin"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str | None = None) -> tuple[int, str, list[str]]:
        """Status, standard output, and the lines on standard error."""
        process = self.start(code)
        output, errors = process.communicate(timeout=300)
        return process.returncode, output.strip(), errors.splitlines()


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    return Builder(tmp_path)


def test_a_library_is_built_once(builder: Builder) -> None:
    status, path, messages = builder.run()
    assert (status, Path(path).read_text()) == (0, "library\n")
    assert Path(path).is_relative_to(builder.cache)
    assert messages[0].startswith("triton-dist: building the device npu for torch")
    assert builder.run() == (0, path, [])
    assert builder.calls() == 1
    assert {file.name for file in Path(path).parent.iterdir()} == {Path(path).name, "lock"}


def test_another_compiler_builds_another_library(builder: Builder) -> None:
    _, first, _ = builder.run()
    builder.compiler("# another one")
    _, second, _ = builder.run()
    assert first != second
    assert builder.calls() == 2


def test_processes_that_start_at_once_share_one_build(builder: Builder) -> None:
    builder.compiler("sleep 1")
    processes = [builder.start() for _ in range(3)]
    paths = {process.communicate(timeout=300)[0] for process in processes}
    assert len(paths) == 1
    assert builder.calls() == 1


def test_what_a_killed_build_has_left_goes_with_the_next(builder: Builder) -> None:
    _, path, _ = builder.run()
    Path(path).unlink()
    (Path(path).parent / "build-left").mkdir()
    builder.run()
    assert {file.name for file in Path(path).parent.iterdir()} == {Path(path).name, "lock"}


def test_sources_that_do_not_compile_are_one_line_and_leave_nothing(builder: Builder) -> None:
    builder.compiler("echo 'unit.cpp:7:1: error: no such thing' >&2; exit 1")
    status, output, messages = builder.run()
    assert (status, output) == (1, "")
    assert messages[-1].startswith("error: the torch device does not compile against torch")
    assert messages[-1].endswith("unit.cpp:7:1: error: no such thing")
    assert [file.name for file in builder.cache.rglob("*") if file.is_file()] == ["lock"]


def test_without_a_compiler_a_library_built_before_is_used(builder: Builder) -> None:
    _, path, _ = builder.run()
    # A PATH with no compiler at all.
    builder.bin.joinpath("c++").unlink()
    environ = env.child_environ(TRITON_DIST_CACHE_DIR=builder.cache, PATH=builder.bin)
    command = [sys.executable, "-m", "triton_dist.runtime.torch_device.build"]
    found = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300, check=False)
    assert (found.stdout.strip(), found.stderr) == (path, "")
    Path(path).unlink()
    missing = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300, check=False)
    assert missing.returncode == 1
    (line,) = missing.stderr.splitlines()
    assert line.startswith("error: no C++ compiler: c++ is not on PATH")


IMPORT = "import torch; print(hasattr(torch, 'npu'), torch.ones(2).sum().item())"


def test_importing_torch_survives_a_build_that_fails(builder: Builder) -> None:
    builder.compiler("echo 'fatal error: no' >&2; exit 1")
    status, output, messages = builder.run(IMPORT)
    assert (status, output) == (0, "False 2.0")
    assert len(messages) == 2
    assert messages[1].startswith("triton-dist: torch has no device npu: ")


def test_importing_torch_survives_a_library_that_cannot_be_loaded(builder: Builder) -> None:
    status, output, messages = builder.run(IMPORT)
    assert (status, output) == (0, "False 2.0")
    assert messages[-1].startswith("triton-dist: torch has no device npu: ")


def test_torch_npu_says_why_there_is_no_device(builder: Builder) -> None:
    builder.compiler("echo 'fatal error: no' >&2; exit 1")
    status, _, messages = builder.run("import torch_npu")
    assert status == 1
    assert "TorchDeviceError: the torch device does not compile" in messages[-1]


def test_a_cache_that_cannot_be_made_is_named(builder: Builder) -> None:
    # Not even root can make a directory here.
    builder.cache = Path("/proc/no-such-place")
    status, _, messages = builder.run()
    assert status == 1
    assert "make it writable, or name another directory in TRITON_DIST_CACHE_DIR" in messages[-1]
    assert str(builder.cache) in messages[-1]


def test_a_cache_that_is_a_file_is_named(builder: Builder) -> None:
    builder.cache.write_text("")
    status, _, messages = builder.run()
    assert status == 1
    (line,) = messages
    assert str(builder.cache) in line
    assert "name another directory in TRITON_DIST_CACHE_DIR" in line


def test_a_torch_that_was_not_tested_is_named(builder: Builder, tmp_path: Path) -> None:
    torch = tmp_path / "torch"
    torch.mkdir()
    (torch / "__init__.py").write_text("")
    (torch / "version.py").write_text("__version__ = '1.4.2'\ngit_version = '0'\n")
    status, output, messages = builder.run(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from triton_dist.runtime.torch_device import build\n"
        "sys.exit(build.main())\n"
    )
    assert (status, output) == (1, "")
    (line,) = messages
    assert line.startswith("error: torch 1.4.2 is not one that simulated NPUs are tested with (2.13)")
