"""`python -m triton_dist selftest`: each step on simulated NPUs, and a report of whatever goes wrong."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from devices.host import NO_CANN, Host

from triton_dist import commands, env
from triton_dist.commands.selftest import steps
from triton_dist.compiler.npu import tools

CHECKOUT = Path(__file__).parents[3]
# As docs/ascend.md has it.
(COMMAND,) = [
    shlex.split(command)[1:]
    for command in re.findall(r"```sh\n(.*?)\n```", (CHECKOUT / "docs" / "ascend.md").read_text())
    if "selftest" in command
]
NAMES = ["devices", "doctor", "compile", "launch", "ranks", "notify-wait", "put"]
NOT_SET = (*NO_CANN, "TRITON_DIST_SIM_NPUS", "TRITON_DIST_SIM_SOC", "TRITON_ASCEND_ARCH", "ASCEND_HOME_PATH")
needs_compiler = pytest.mark.skipif(tools.wheel_directory() is None, reason="ascendnpu-ir is not installed")

# Notes what it is run with; `bishengir-compile` asks for its version first, and has it link bitcode if it knows that.
_HIVMC = """\
#!{python}
import pathlib, sys
with pathlib.Path({record!r}).open("a") as record:
    print(*sys.argv[1:], file=record)
if "--version" in sys.argv:
    print("hivmc 1.2.0 (abcdef0 2026-01-01)")
elif {makes_a_binary}:
    pathlib.Path(sys.argv[sys.argv.index("-o") + 1] + ".o").write_bytes(b"binary")
"""


class SelfTest:
    """Self-tests with leases of their own, by which their processes are known.

    Attributes:
        leases: the lease directory.
        report: where the reports go.
    """

    def __init__(self, root: Path) -> None:
        self.leases, self.report = root / "leases", root / "report.txt"

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        """In a process of its own."""
        environ = {**dict.fromkeys(NOT_SET), "TRITON_DIST_LEASE_DIR": str(self.leases), **variables}
        return subprocess.Popen(
            [sys.executable, *COMMAND, "--report", str(self.report), *arguments],
            env=env.child_environ(**environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, **variables: str) -> tuple[int, dict[str, dict[str, Any]], str]:
        """Its exit code, its steps by name, and the report."""
        process = self.start("--json", *arguments, **variables)
        stdout, stderr = process.communicate(timeout=300)
        assert f"report: {self.report}" in stderr
        found = {each["name"]: each for each in json.loads(stdout)["steps"]}
        assert list(found) == NAMES
        return process.returncode, found, self.report.read_text()

    def processes(self) -> list[str]:
        """Command lines of what is running for it."""
        mark = f"TRITON_DIST_LEASE_DIR={self.leases}".encode()
        found = []
        for folder in Path("/proc").iterdir():
            try:
                if folder.name != str(os.getpid()) and mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append((folder / "cmdline").read_text())
            except OSError:
                continue  # no process, ended meanwhile, or another user's
        return found

    def check_nothing_left(self, seconds: float = 5.0) -> None:
        deadline = time.monotonic() + seconds
        while found := self.processes():
            assert time.monotonic() < deadline, found
            time.sleep(0.05)


@pytest.fixture
def selftest(tmp_path: Path) -> Iterator[SelfTest]:
    """What starts self-tests; nothing of them may be left at the end."""
    made = SelfTest(tmp_path)
    yield made
    made.check_nothing_left()


@pytest.fixture
def in_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, list[str], str, str]]:
    """Runs a self-test in this process; gives exit code, lines of the steps, standard error, and the report."""
    for name in NOT_SET:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRITON_DIST_LEASE_DIR", str(tmp_path / "leases"))
    report = tmp_path / "report.txt"
    before = env.child_environ()

    def run(*arguments: str) -> tuple[int, list[str], str, str]:
        try:
            code = commands.main(["selftest", "--report", str(report), *arguments])
        except SystemExit as end:
            code = int(str(end.code))
        said = capsys.readouterr()
        # What it chose was for what it started.
        assert env.child_environ().get("TRITON_DIST_SIM_NPUS") == before.get("TRITON_DIST_SIM_NPUS")
        return code, said.out.splitlines(), said.err, report.read_text() if report.exists() else ""

    return run


def hivmc(directory: Path, record: Path, *, makes_a_binary: bool) -> None:
    directory.mkdir(exist_ok=True)
    program = directory / "hivmc"
    program.write_text(_HIVMC.format(python=sys.executable, record=str(record), makes_a_binary=makes_a_binary))
    program.chmod(0o755)


@needs_compiler
def test_all_steps_on_simulated_npus(selftest: SelfTest) -> None:
    # What is secret also stands in a variable that is shown.
    secrets = {"UPLOAD_TOKEN": selftest.leases.name, "PIP_PASSWORD": "a word", "SOME_URL": "none"}
    code, found, report = selftest.run("--npus", "sim:2", **secrets)
    assert {name: each["state"] for name, each in found.items()} == dict.fromkeys(NAMES, "ok"), report
    assert code == 0
    assert found["devices"]["what"] == "2 simulated (Ascend910B3)"
    assert found["compile"]["what"].startswith("3 kernels for Ascend910B3")
    assert '"aclshmem_int64_p"' in report
    assert "torch.npu calls the NPU" in report
    for name in NAMES:
        assert f" ok       {name} " in report
    for part in (
        "triton-ascend: 3.2.0",
        '"llvm": "19.1.7"',
        '"commit"',
        "npu-smi",
        f"python: {sys.version.split()[0]}",
    ):
        assert part in report
    assert f"TRITON_DIST_LEASE_DIR: {selftest.leases.parent}/(not shown)" in report
    assert str(selftest.leases) not in report


@needs_compiler
def test_a_host_with_npus_up_to_what_is_missing(selftest: SelfTest, tmp_path: Path) -> None:
    host = Host(tmp_path / "host")
    host.a2()
    record = tmp_path / "hivmc.log"
    hivmc(tmp_path / "host" / "bin", record, makes_a_binary=True)
    library = tmp_path / "shmem.aiv.c220.bc"
    library.write_bytes(
        b"".join(f"_mlir_ciface_aclshmem_{name}".encode() for name in DEVICE_FUNCTIONS) + b"_mlir_ciface_tdist"
    )
    code, found, report = selftest.run("--npus", "0-1", TRITON_DIST_DEVICE_LIBRARY=str(library), **host.environ)
    assert code == 1
    assert found["devices"]["what"] == "2 (Ascend910B3): 0-1"
    assert "| 0     910B3               | OK " in report
    assert found["compile"]["what"] == "3 kernels for Ascend910B3, with its last step"
    assert str(library) in record.read_text()
    # Neither CANN nor torch_npu is there.
    assert found["doctor"]["state"] == "FAIL"
    assert "CANN" in found["doctor"]["what"] + found["doctor"]["mend"] + found["doctor"]["details"]["findings"]
    assert found["launch"]["state"] == found["ranks"]["state"] == "FAIL"
    assert found["launch"]["what"].startswith("rank 0 of 1: ")
    assert "send it back" in found["launch"]["mend"]
    assert "Traceback" in report or "workers.py" in report
    for name in ("notify-wait", "put"):
        assert found[name]["what"] == "it needs the step launch, which failed"
        assert found[name]["state"] == "skipped"


DEVICE_FUNCTIONS = (
    *("my_pe", "n_pes", "ptr_float", "int64_p", "wait_int64", "consume_token_float_ptr_1d"),
    *("float_putmem", "quiet"),
)


@needs_compiler
def test_a_failure_of_the_compiler(in_process: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hivmc(tmp_path / "bin", tmp_path / "hivmc.log", makes_a_binary=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{env.child_environ()['PATH']}")
    code, lines, _, report = in_process("--npus", "sim:1")
    assert code == 1
    (failed,) = [line for line in lines if line.startswith(" FAIL     compile")]
    assert f"add_twice for Ascend910B3 is failed: {tmp_path / 'bin' / 'hivmc'} made no binary" in failed
    after = lines[lines.index(failed) + 1]
    assert after.lstrip().startswith("next: python -m triton_dist compile ")
    skipped = [line for line in lines if line.startswith(" skipped ")]
    assert [line.split()[1] for line in skipped] == ["launch", "ranks", "notify-wait", "put"]
    assert "it needs the step compile, which failed" in skipped[0]
    # That one for want of a second NPU, and not for what failed.
    assert "it takes 2 NPUs, and there is 1" in skipped[1]
    assert [line for line in lines if line.startswith("2 ok, 1 failed, 4 skipped")]
    assert "\n".join([failed, after]) in report


def test_ranks_that_hang_or_are_killed(in_process: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "WORKERS", "stranger_ranks")
    monkeypatch.syspath_prepend(Path(__file__).parent)
    chosen = [step for step in steps.STEPS if step.name not in ("doctor", "compile")]
    needing = [replace(step, needs=tuple(need for need in step.needs if need != "compile")) for step in chosen]
    monkeypatch.setattr(steps, "STEPS", tuple(needing))
    code, lines, _, report = in_process("--npus", "sim:2", "--timeout", "8")
    assert code == 1
    failed = [line for line in lines if line.startswith(" FAIL ")]
    assert "notify-wait" in failed[0]
    assert "time-out: rank 1 of 2 was not done 8 s after" in failed[0]
    assert "put" in failed[1]
    assert "rank 0 of 2: ended by SIGKILL" in failed[1]
    # Where it hung, and what it had printed.
    assert "in never_returns" in report
    assert "rank 1 is about to hang" in report


def test_a_report_that_cannot_be_written(in_process: Any, tmp_path: Path) -> None:
    code, lines, said, _ = in_process("--report", str(tmp_path / "nowhere" / "report.txt"))
    assert (code, lines) == (1, [])
    assert said.splitlines() == [
        "python -m triton_dist selftest: the report cannot be written to "
        f"{tmp_path / 'nowhere' / 'report.txt'}: No such file or directory"
    ]
    code, _, said, _ = in_process("--npus", "sim:1", "--report", "/dev/full")
    assert code == 1
    assert said.splitlines() == [
        "python -m triton_dist selftest: the report cannot be written to /dev/full: No space left on device"
    ]


def test_ended_by_a_signal_it_leaves_nothing_but_the_report(selftest: SelfTest) -> None:
    process = selftest.start("--npus", "sim:2")
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith(" ok       devices ")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    selftest.check_nothing_left()
    assert "the self-test had not ended when this was written" in selftest.report.read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--npus", "some"], 2, "--npus=some is not allowed: it takes auto, COUNT"),
        (["--timeout", "0"], 2, "0 is not a number of seconds greater than 0"),
        (["--timeout", "soon"], 2, "soon is not a number of seconds greater than 0"),
        (["--npus", "sim:0"], 2, "--npus=sim:0 is not allowed"),
    ],
)
def test_wrong_usage(in_process: Any, arguments: list[str], code: int, text: str) -> None:
    found, lines, said, report = in_process(*arguments)
    assert (found, lines, report) == (code, [], "")
    assert text in said


def test_the_readme_has_the_same_command() -> None:
    assert f".venv/bin/python {shlex.join(COMMAND)}" in (CHECKOUT / "README.md").read_text()


def test_its_help_names_every_step(in_process: Any) -> None:
    code, lines, _, _ = in_process("--help")
    assert code == 0
    text = "\n".join(lines)
    for name in NAMES:
        assert f"\n  {name} " in text
    assert "python -m triton_dist selftest --npus sim:2" in text
