"""The doctor finds what is wrong with a host: each finding is provoked with a real file, program, variable or mount."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from devices.host import NO_CANN, Host, output

from triton_dist import env, pins
from triton_dist.commands import doctor

PINS = pins.read()
TRITON = PINS["python"]["triton-ascend"]
CHECKOUT = Path(__file__).parents[3]
# What the environment of who runs the tests may hold, and a host of theirs does not.
NOT_SET = (
    *(*NO_CANN, "ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "TRITON_NPU_COMPILER_PATH", "TRITON_DIST_IMAGE_CHIP"),
    *("MASTER_PORT", "SHMEM_UID_SESSION_ID", "LLVM_SYSPATH", "TORCH_DEVICE_BACKEND_AUTOLOAD"),
)

Examine = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def examine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Examine:
    """Runs one check; gives its findings. The exit code must be right."""
    for name in NOT_SET:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()

    def run(check: str, *arguments: str) -> list[dict[str, Any]]:
        code = doctor.main(["--only", check, "--json", *arguments], "doctor")
        findings: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["findings"]
        assert code == int(any(finding["level"] == "FAIL" for finding in findings))
        for finding in findings:
            assert finding["check"] == check
            assert bool(finding["why"]) == bool(finding["mend"]) == (finding["level"] != "ok")
            assert "\n" not in finding["what"] + finding["why"] + finding["mend"]
        return findings

    return run


def only(findings: list[dict[str, Any]], level: str) -> dict[str, Any]:
    """The one finding of that level."""
    (found,) = [finding for finding in findings if finding["level"] == level]
    return found


def program(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def distribution(site: Path, name: str, version: str, *files: str) -> None:
    """What pip leaves in site-packages of a distribution."""
    information = site / f"{name.replace('-', '_')}-{version}.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (information / "RECORD").write_text("".join(f"{file},,\n" for file in files))


def in_process_of_its_own(*arguments: str, **variables: str | None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "triton_dist", "doctor", *arguments]
    environ = env.child_environ(**{**dict.fromkeys(NOT_SET), **variables})
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environ, timeout=120)


def without_packages(*arguments: str, path: str) -> subprocess.CompletedProcess[str]:
    """By a Python that has the standard library and what is on `path`, and nothing else."""
    bare: str = sys._base_executable  # type: ignore[attr-defined]
    environ = env.child_environ(**{**dict.fromkeys(NOT_SET), "PYTHONPATH": path})
    command = [bare, "-S", "-m", "triton_dist", "doctor", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environ, timeout=120)


def test_all_of_it_as_people_see_it() -> None:
    done = in_process_of_its_own(PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert done.returncode == 0, done.stdout
    assert f" ok    triton is imported from triton-ascend {TRITON} at " in done.stdout
    assert " ok    build: " in done.stdout
    assert "simulated NPUs will be used" in done.stdout


# ------------------------------------------------------------------------------------------ triton (trap 1)


def shadow(site: Path) -> None:
    (site / "triton" / "_C").mkdir(parents=True)
    (site / "triton" / "__init__.py").write_text("__version__ = '3.6.0'\n")


@pytest.mark.parametrize(
    ("stock", "said", "fix"),
    [
        (
            True,
            "the distribution triton 3.6.0 lies over triton-ascend",
            ["uninstall --yes triton", "--force-reinstall"],
        ),
        (False, "not from triton-ascend", []),
    ],
)
def test_a_triton_that_shadows_triton_ascend(tmp_path: Path, stock: bool, said: str, fix: list[str]) -> None:
    shadow(tmp_path)
    if stock:
        distribution(tmp_path, "triton", "3.6.0", "triton/__init__.py")
    done = in_process_of_its_own("--only", "triton", "--json", PYTHONPATH=str(tmp_path))
    found = only(json.loads(done.stdout)["findings"], "FAIL")
    assert done.returncode == 1
    assert said in found["what"]
    assert str(tmp_path / "triton") in found["what"]
    assert [text for command, text in zip(found["fix"], fix, strict=True) if text not in " ".join(command)] == []
    assert "libtriton is not a package" in found["why"]


@pytest.mark.parametrize("damage", ["directory without __init__", "changed", "other version", "left over"])
def test_a_triton_that_is_not_as_it_was_installed(tmp_path: Path, damage: str) -> None:
    site = tmp_path / "site"
    shadow(site)
    record = ["triton/__init__.py,sha256=AAAA,10", "triton/_C/libtriton.so,,"]
    if damage != "left over":
        distribution(site, "triton-ascend", "3.1.0" if damage == "other version" else TRITON)
        (information,) = site.glob("*.dist-info")
        (information / "RECORD").write_text("\n".join(record))
    if damage == "directory without __init__":
        (site / "triton" / "__init__.py").unlink()
    done = without_packages("--only", "triton", "--json", path=f"{site}:{CHECKOUT / 'python'}")
    found = only(json.loads(done.stdout)["findings"], "FAIL")
    expected = {
        "directory without __init__": "a directory without __init__.py, is imported as triton",
        "changed": f"{site / 'triton' / '__init__.py'} is not the one",
        "other version": "triton-ascend is 3.1.0",
        "left over": f"is not installed, and something is left of a triton at {site / 'triton'}",
    }
    assert expected[damage] in found["what"]
    assert found["fix"][-1][-1] == f"triton-ascend=={TRITON}"


# ------------------------------------------------------------------------------------- interpreter (trap 2)


def test_a_pip_of_another_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, examine: Examine) -> None:
    pip = tmp_path / "bin" / "pip"
    program(pip, "").write_text("#!/opt/elsewhere/bin/python3.9\nimport pip\n")
    monkeypatch.setenv("PATH", f"{pip.parent}:{os.environ['PATH']}")
    found = only(examine("interpreter"), "warn")
    assert f"{pip} is that of /opt/elsewhere/bin/python3.9" in found["what"]
    # A shim that runs another pip.
    program(pip, "echo 'pip 23.0 from /opt/shim/lib/python3.10/site-packages/pip (python 3.10)'")
    assert "is that of /opt/shim/bin/python3.10" in only(examine("interpreter"), "warn")["what"]
    # Our own.
    pip.write_text(f"#!{sys.executable}\nimport pip\n")
    assert "pip of the same interpreter" in only(examine("interpreter"), "ok")["what"]


# ----------------------------------------------------------------------------- build and toolchain (trap 6)


def test_an_llvm_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, examine: Examine) -> None:
    monkeypatch.setenv("LLVM_SYSPATH", str(tmp_path / "nowhere"))
    assert "no such directory" in only(examine("toolchain"), "FAIL")["what"]


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A checkout with the sources of the package, in which things may be broken."""
    root = tmp_path / "checkout"
    leave = shutil.ignore_patterns("__pycache__")
    for folder in ("triton_dist", "_build_backend"):
        shutil.copytree(CHECKOUT / "python" / folder, root / "python" / folder, ignore=leave)
    shutil.copytree(CHECKOUT / "docker", root / "docker")
    (root / "csrc").mkdir()
    return root


def test_stale_caches_of_cmake_are_found_and_removed(copied: Path) -> None:
    good = f"CMAKE_HOME_DIRECTORY:INTERNAL={copied}/csrc\nLLVM_SYSPATH:PATH=/usr\nMLIR_DIR:PATH=/usr\n"
    caches = {
        "good": good,
        "moved": "CMAKE_HOME_DIRECTORY:INTERNAL=/somewhere/else/csrc\n",
        "gone": good.replace("LLVM_SYSPATH:PATH=/usr", "LLVM_SYSPATH:PATH=/opt/llvm-that-was"),
        "empty": good.replace("MLIR_DIR:PATH=/usr", "MLIR_DIR:PATH=MLIR_DIR-NOTFOUND"),
    }
    for name, text in caches.items():
        (copied / "build" / name / "CMakeFiles").mkdir(parents=True)
        (copied / "build" / name / "CMakeCache.txt").write_text(text)
    done = without_packages("--only", "build", "--fix", path=str(copied / "python"))
    assert [name for name in caches if f"fix: rm -rf {copied}/build/{name}/CMakeCache.txt" in done.stderr] == [
        *("moved", "gone", "empty")
    ]
    assert done.returncode == 0, done.stdout
    assert [path.parent.name for path in (copied / "build").glob("*/CMakeCache.txt")] == ["good"]


# ------------------------------------------------------------------------------- CANN and torch_npu (trap 9)


def cann(home: Path, version: str) -> Path:
    home.mkdir(parents=True)
    (home / "set_env.sh").write_text(f"export ASCEND_HOME_PATH={home}\n")
    architecture = home / "x86_64-linux"
    architecture.mkdir()
    (architecture / "ascend_toolkit_install.info").write_text(f"package_name=Ascend-cann-toolkit\nversion={version}\n")
    return home


def test_a_cann_that_was_not_sourced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, examine: Examine) -> None:
    script = cann(tmp_path / "home" / "Ascend" / "cann", "8.5.0") / "set_env.sh"
    found = only(examine("cann"), "warn")
    assert "has not been sourced" in found["what"]
    assert found["mend"] == f"source {script}"
    monkeypatch.setenv("TRITON_DIST_BACKEND", "ascend")
    assert only(examine("cann"), "FAIL")["mend"] == f"source {script}"


@pytest.mark.parametrize(
    ("version", "torch_npu", "level"),
    [
        ("8.5.0", None, "ok"),
        ("8.5.0.B120", "2.7.1", "ok"),
        ("8.5.0", "2.9.0", "FAIL"),
        ("9.1.0", "2.9.0", "FAIL"),
        ("7.0.0", None, "FAIL"),
    ],
)
def test_what_goes_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, examine: Examine, version: str, torch_npu: str | None, level: str
) -> None:
    monkeypatch.setenv("ASCEND_HOME_PATH", str(cann(tmp_path / "cann", version)))
    monkeypatch.setenv("TRITON_DIST_BACKEND", "ascend")
    if torch_npu:
        distribution(tmp_path / "site", "torch-npu", torch_npu)
        monkeypatch.syspath_prepend(str(tmp_path / "site"))
    found = only(examine("cann"), level)
    assert f"CANN {version} at {tmp_path / 'cann'} with triton-ascend {TRITON}" in found["what"]
    if version == "9.1.0":  # what would go with it is named
        assert "CANN 9.1.0 with triton-ascend 3.2.2 and torch_npu 2.7.1.post8 or 2.9.0" in found["mend"]


def test_a_torch_npu_that_cannot_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, examine: Examine) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler (cc) to make libraries with")
    site = tmp_path / "site"
    package = site / "torch_npu"
    package.mkdir(parents=True)
    missing = tmp_path / "libascendcl.so"
    library = package / "libtorch_npu.so"
    subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", missing], check=True)
    subprocess.run(
        ["cc", "-shared", "-Wl,--no-as-needed", "-x", "c", "/dev/null", "-x", "none", missing, "-o", library]
    )
    missing.unlink()
    torch = importlib.metadata.version("torch").split("+")[0]
    distribution(site, "torch-npu", torch, "torch_npu/libtorch_npu.so")
    monkeypatch.syspath_prepend(str(site))
    found = only(examine("torch_npu"), "FAIL")
    assert str(missing) in found["what"] or "libascendcl.so" in found["what"]
    assert "TORCH_DEVICE_BACKEND_AUTOLOAD=0" in found["mend"]
    # Then `import torch` leaves it alone.
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    assert only(examine("torch_npu"), "warn")["what"] == found["what"]
    shutil.rmtree(site)
    distribution(site, "torch-npu", "1.11.0")
    assert "each release is for the torch of the same number" in only(examine("torch_npu"), "warn")["what"]


def test_packages_that_are_missing_or_too_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, examine: Examine
) -> None:
    distribution(tmp_path, "psutil", "5.0")
    distribution(tmp_path, "torch", "2.1.0")
    monkeypatch.syspath_prepend(str(tmp_path))
    findings = examine("packages")
    found = only(findings, "FAIL")
    assert found["what"] == "not satisfied: psutil>=5.9"
    assert found["fix"] == [[sys.executable, "-m", "pip", "install", "psutil>=5.9"]]
    assert "torch 2.1.0" in only(findings, "warn")["what"]


# -------------------------------------------------------------------------------- the NPU's compiler (trap 4)


def test_an_npu_compiler_without_its_bitcode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, examine: Examine) -> None:
    tools = tmp_path / "npuir"
    for name in ("bishengir-compile", "hivmc"):
        program(tools / "bin" / name, "")
    monkeypatch.setenv("TRITON_NPU_COMPILER_PATH", str(tools))
    monkeypatch.setenv("TRITON_DIST_BACKEND", "ascend")
    found = only(examine("compiler"), "FAIL")
    assert found["why"].endswith("Failed to compile BiShengLIR to binary")
    (tools / "lib").mkdir()
    (tools / "lib" / "meta_op.aiv.bc").touch()
    assert only(examine("compiler"), "ok")["what"].startswith(f"bishengir-compile at {tools}")
    assert "--version says '', which bishengir-compile takes for one" in only(examine("compiler"), "warn")["what"]
    for said, warnings in (("hivmc 1.2.0 (0123abc 2026-01-01)", 0), ("hivmc 0.1.0 (0123abc 2026-01-01)", 1)):
        program(tools / "bin" / "hivmc", f"echo '{said}'")
        assert [finding["level"] for finding in examine("compiler")].count("warn") == warnings
    (tools / "bin" / "hivmc").unlink()
    assert only(examine("compiler"), "FAIL")["what"] == "no hivmc on PATH"


# ------------------------------------------------------------------------------------------------------ NPUs


@pytest.fixture
def host(tmp_path: Path, examine: Examine, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host with NPUs."""
    made = Host(tmp_path / "host")
    for name, value in made.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TRITON_DIST_LEASE_DIR", str(tmp_path / "leases"))
    return made


def test_npus_of_which_some_cannot_be_used(host: Host, examine: Examine) -> None:
    host.a2()
    findings = examine("npus")
    assert "Warning" in only(findings, "warn")["what"]
    assert only(findings, "ok")["what"] == "8 NPUs of Ascend910B3: 6 free, 1 busy, 1 skipped"


def test_npus_of_another_family_than_the_image(host: Host, examine: Examine, monkeypatch: pytest.MonkeyPatch) -> None:
    host.a2()
    monkeypatch.setenv("TRITON_DIST_IMAGE_CHIP", "910b")
    assert "8 NPUs" in only(examine("npus"), "ok")["what"]
    monkeypatch.setenv("TRITON_DIST_IMAGE_CHIP", "a3")
    found = only(examine("npus"), "FAIL")
    assert found["what"] == "this image is for a3, and the NPUs are Ascend910B3"
    assert found["mend"] == "use the image for 910b"


def test_npus_that_are_all_taken_or_not_there(host: Host, examine: Examine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DIST_BACKEND", "ascend")
    assert only(examine("npus"), "FAIL")["what"] == "no NPU is visible"
    host.nodes([5])  # a program is on it
    host.npu_smi(output("a2-8x910b3"))
    findings = examine("npus")
    assert findings[-1]["level"] == "FAIL"
    assert findings[-1]["what"].startswith("none of 1 NPUs can be had: 1 busy")


# ------------------------------------------------------------------------ memory, disk, leases, ports (trap 10)


def test_a_small_dev_shm_and_a_full_disk(tmp_path: Path) -> None:
    mounts = 'mount -t tmpfs -o size=64m tmpfs /dev/shm && mount -t tmpfs -o size=32m tmpfs "$1" && shift && exec "$@"'
    (tmp_path / "cache").mkdir()
    doctor_command = [sys.executable, "-m", "triton_dist", "doctor", "--only", "memory", "--only", "disk", "--json"]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mounts, "sh", str(tmp_path / "cache"), *doctor_command],
        env=env.child_environ(TRITON_DIST_CACHE_DIR=tmp_path / "cache" / "kernels", TRITON_DIST_BACKEND="sim"),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"this user may not mount file systems: {done.stderr.strip()}")
    findings = json.loads(done.stdout)["findings"]
    shm = next(finding for finding in findings if "/dev/shm" in finding["what"])
    assert (shm["level"], shm["what"]) == ("warn", "/dev/shm has 64 MB in all")
    assert "SIGBUS" in shm["why"]
    assert "--shm-size" in shm["mend"]
    disk = only(findings, "FAIL")
    assert disk["what"] == f"TRITON_DIST_CACHE_DIR, {tmp_path}/cache/kernels, has 32 MB free"


def test_more_ranks_than_memory_is_there_for(examine: Examine) -> None:
    assert "100000 ranks take some" in only(examine("memory", "--ranks", "100000"), "warn")["what"]


@pytest.mark.parametrize("variable", ["TRITON_DIST_CACHE_DIR", "TRITON_CACHE_DIR", "TRITON_DUMP_DIR"])
def test_a_directory_that_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, examine: Examine, variable: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(variable, str(tmp_path / "file"))
    found = only(examine("disk"), "FAIL")
    assert found["what"] == f"{variable}, {tmp_path}/file: {tmp_path}/file is not a directory"
    assert variable in found["mend"]


def test_a_lease_directory_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, examine: Examine
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TRITON_DIST_LEASE_DIR", str(tmp_path / "file" / "leases"))
    assert f"the lease directory {tmp_path}/file/leases cannot be used" in only(examine("leases"), "FAIL")["what"]


@pytest.mark.parametrize("variable", ["MASTER_PORT", "SHMEM_UID_SESSION_ID"])
def test_a_port_that_is_taken(monkeypatch: pytest.MonkeyPatch, examine: Examine, variable: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setenv(variable, str(port) if variable == "MASTER_PORT" else f"127.0.0.1:{port}")
        found = only(examine("ports"), "warn")
    assert found["what"] == f"{variable}: something listens at port {port} of this host already"
    assert only(examine("ports"), "ok")["what"] == f"free: {variable} ({port})"


def test_a_variable_that_is_refused(monkeypatch: pytest.MonkeyPatch, examine: Examine) -> None:
    monkeypatch.setenv("TRITON_DIST_SIM_NPUS", "many")
    assert "TRITON_DIST_SIM_NPUS='many' is not allowed" in only(examine("variables"), "FAIL")["what"]


# ---------------------------------------------------------------------------------------------------- docker


def test_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, examine: Examine) -> None:
    client = program(tmp_path / "bin" / "docker", "echo 20.10.24")
    monkeypatch.setenv("PATH", f"{client.parent}:/usr/bin:/bin")
    assert only(examine("docker"), "ok")["what"] == "docker 20.10.24"
    program(client, "echo 'dial unix /var/run/docker.sock: connect: permission denied' >&2; exit 1")
    assert only(examine("docker"), "warn")["mend"].startswith("usermod -aG docker")
    program(client, "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    assert "dockerd" in only(examine("docker"), "warn")["mend"]


# -------------------------------------------------------------------------------------------------- the form


def test_the_quick_form_shows_what_is_wrong_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRITON_DIST_LEASE_DIR", str(tmp_path / "leases"))
    assert doctor.main(["--quick", "--only", "leases"], "doctor") == 0
    assert capsys.readouterr().out.startswith("1 looked at, nothing is wrong (")
    monkeypatch.setenv("TRITON_DIST_LEASE_DIR", "/dev/null/leases")
    assert doctor.main(["--quick", "--only", "leases", "--only", "memory"], "doctor") == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line[:6].strip() for line in lines[:3]] == ["FAIL", "", ""]
    assert lines[2].startswith("       mend: ")


def test_before_the_build_nothing_that_it_installs_is_missed() -> None:
    done = without_packages("--before-build", "--json", path=str(CHECKOUT / "python"))
    findings = json.loads(done.stdout)["findings"]
    # Without site-packages there is no pip either.
    assert {finding["check"] for finding in findings if finding["level"] == "FAIL"} <= {"interpreter"}
    assert {finding["check"] for finding in findings} == {"interpreter", "toolchain", "build", "memory", "disk"}


@pytest.mark.parametrize("arguments", [["--only", "nothing"], ["--ranks", "0"], ["--ranks", "some"]])
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        doctor.main(arguments, "doctor")
    assert ended.value.code == 2
    assert "usage: doctor" in capsys.readouterr().err
