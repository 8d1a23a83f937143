"""Images and what runs in them: the commands for docker, and Dockerfiles without the traps that people hit."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn, cast

import nox
import pytest
from devices.host import NO_CANN, Host

from _build_backend import checkout
from ci.images import base, build, engine, matrix, run
from triton_dist import env

DOCKERFILES = sorted((checkout.ROOT / "docker").rglob("*Dockerfile*"))
SCRIPTS = [
    *(checkout.ROOT / name for name in ("ci/nox", "ci/bootstrap", ".ci/run")),
    *(path for path in (checkout.ROOT / "docker").rglob("*") if path.is_file() and path.read_bytes().startswith(b"#!")),
]


class Session:
    """As much of a session as the code here asks for."""

    name = "docker"

    def error(self, message: str) -> NoReturn:
        raise RuntimeError(message)


SESSION = cast(nox.Session, Session())


def client(folder: Path, version: str, *, buildx: bool = False, daemon: bool = True) -> None:
    """A docker on the PATH; it logs what it is called with."""
    folder.mkdir()
    answers = [
        'echo "$@" >> "$(dirname "$0")/log"',
        'case "$1 $2" in',
        f'"version --format") {f"echo {version}" if daemon else "echo no daemon >&2; exit 1"} ;;',
        f'"buildx version") exit {0 if buildx else 1} ;;',
        '"image inspect") [ "$3" = there ] ;;',
        "*) exit 1 ;;",
        "esac",
    ]
    (folder / "docker").write_text("\n".join(["#!/bin/sh", *answers, ""]))
    (folder / "docker").chmod(0o755)


def test_a_client_with_buildkit_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client(tmp_path / "new", "28.2.2")
    client(tmp_path / "old", "20.10.24")
    monkeypatch.setenv("PATH", f"{tmp_path / 'new'}:{tmp_path / 'old'}:/nowhere")
    assert engine.find(SESSION, builds=False, dry=False).client == str(tmp_path / "new" / "docker")
    # From 23 on a client has BuildKit with buildx only; before, all of them have it, when they are told.
    found = engine.find(SESSION, builds=True, dry=False)
    assert (found.client, found.variables) == (str(tmp_path / "old" / "docker"), {"DOCKER_BUILDKIT": "1"})
    monkeypatch.setenv("PATH", str(tmp_path / "new"))
    with pytest.raises(RuntimeError, match=r"28\.2\.2 has no buildx: apt-get install docker-buildx"):
        engine.find(SESSION, builds=True, dry=False)


def test_no_docker_or_no_daemon_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client(tmp_path / "bin", "20.10.24", daemon=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(RuntimeError, match=r"no daemon .*doctor --only docker"):
        engine.find(SESSION, builds=True, dry=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(RuntimeError, match="docker is not installed"):
        engine.find(SESSION, builds=False, dry=False)


def test_a_base_that_is_there_or_cannot_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client(tmp_path / "bin", "20.10.24")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    docker = engine.find(SESSION, builds=True, dry=False)
    assert base.ensure(SESSION, docker, "there", offline=False) == "there"
    with pytest.raises(RuntimeError, match="no registry gives it: docker pull elsewhere:1"):
        base.ensure(SESSION, docker, "elsewhere:1", offline=False)
    assert "pull --quiet elsewhere:1" in (tmp_path / "bin" / "log").read_text()
    with pytest.raises(RuntimeError, match="and offline"):
        base.ensure(SESSION, docker, "elsewhere:2", offline=True)
    assert "elsewhere:2" not in (tmp_path / "bin" / "log").read_text().replace("inspect elsewhere:2", "")


# ------------------------------------------------------------------------------------------------ docker run


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A host without NPUs, and without variables of whoever runs the tests."""
    for name in (*NO_CANN, "TRITON_DIST_SIM_NPUS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRITON_DIST_LEASE_DIR", str(tmp_path / "leases"))


def pairs(words: list[str], name: str) -> list[str]:
    return [value for word, value in itertools.pairwise(words) if word == name]


@pytest.mark.usefixtures("bare")
def test_what_a_session_gets_of_a_host_without_npus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DIST_SIM_NPUS", "16")
    monkeypatch.setenv("TRITON_DUMP_DIR", "/of/the/host")
    words = run.options("sim", dry=True)
    assert "--device" not in words
    assert "--network=host" not in words
    root = checkout.ROOT
    volumes = pairs(words, "--volume")
    assert f"{root}:{root}" in volumes
    # What is built inside is not what was built outside.
    assert f"{root}/build/docker/sim/build:{root}/build" in volumes
    # All containers of the host lease the same NPUs.
    assert f"{tmp_path / 'leases'}:{tmp_path / 'leases'}" in volumes
    assert pairs(words, "--shm-size") == [str(16 * 256 * 2**20)]
    assert pairs(words, "--user") == [f"{os.getuid()}:{os.getgid()}"]
    assert "TRITON_DIST_SIM_NPUS" in pairs(words, "--env")
    assert "TRITON_DUMP_DIR" not in pairs(words, "--env")


@pytest.mark.usefixtures("bare")
def test_what_a_session_gets_of_a_host_with_npus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(tmp_path / "host")
    host.nodes([0, 3])
    for name, value in host.environ.items():
        monkeypatch.setenv(name, value)
    nodes = Path(host.environ["TRITON_DIST_DEVICE_DIR"])
    (nodes / "hisi_hdc").touch()
    words = run.options("sim", dry=True)
    # Those that this host has, and no others.
    expected = ("davinci0", "davinci3", "davinci_manager", "hisi_hdc")
    assert pairs(words, "--device") == [str(nodes / name) for name in expected]
    assert "--network=host" in words


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-s", "docker-build", "--", "--target", "sim"], ["build", "--network=host", "--target", "sim"]),
        (["-s", "docker", "--", "test-multirank", "-n", "4"], ["run", "--rm", "--init"]),
    ],
)
def test_a_dry_run_prints_the_command(arguments: list[str], expected: list[str]) -> None:
    position = arguments.index("--") + 1
    arguments = [*arguments[:position], "--dry-run", *arguments[position:]]
    done = subprocess.run(
        [sys.executable, "-m", "nox", "-f", str(checkout.ROOT / "noxfile.py"), *arguments],
        env=env.child_environ(PATH="/usr/bin:/bin"),
        capture_output=True,
        text=True,
        check=False,
    )
    if "No module named nox" in done.stderr:
        pytest.skip("nox is not installed in this environment")
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if re.match(r"\S*docker (build|run) ", line)]
    assert line.split()[1 : 1 + len(expected)] == expected
    if "docker" in arguments:
        assert line.endswith("-s test-multirank -- -n 4")


# ------------------------------------------------------------------------------------- Dockerfiles and scripts


def test_the_images_are_those_of_the_pins() -> None:
    pins = checkout.versions()
    sim, *ascend = (matrix.sim(pins), *matrix.ascend(pins))
    assert sim.labels["triton-dist.python.torch"] == pins["python"]["torch"]
    assert sim.labels["triton-dist.toolchain.llvm"] == pins["toolchain"]["llvm"]
    assert ascend
    for image in ascend:
        chip, system = image.labels["triton-dist.chip"], image.labels["triton-dist.os"]
        assert image.arguments["CANN"].endswith(
            f":{pins['ascend']['cann']}-{chip}-{system}-py{pins['ascend']['python']}"
        )
        assert image.arguments["CHIP"] == chip
        assert image.labels["triton-dist.ascend.torch_npu"] == pins["ascend"]["torch_npu"]
    with pytest.raises(RuntimeError, match=r"--chip 310p is none of the images .*: 910b-ubuntu22\.04"):
        build.choose(SESSION, "ascend", "310p", None)


@pytest.mark.parametrize("image", [matrix.sim(checkout.versions()), *matrix.ascend(checkout.versions())])
def test_a_dockerfile_gets_the_arguments_that_it_asks_for(image: matrix.Image) -> None:
    asked = set(re.findall(r"^ARG (\w+)$", (checkout.ROOT / "docker" / image.target / "Dockerfile").read_text(), re.M))
    assert asked == set(image.arguments)
    words = build.command(image, image.target)
    assert set(pairs(words, "--build-arg")) == {f"{name}={value}" for name, value in image.arguments.items()}


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: str(path.relative_to(checkout.ROOT)))
def test_a_dockerfile_repeats_no_version_and_ends_as_an_ordinary_user(dockerfile: Path) -> None:
    text = dockerfile.read_text()
    assert not re.findall(r"^(?:ARG|ENV) \w*(?:VERSION|TORCH|CANN|LLVM|PYTHON)\w*=\S*[0-9]", text, re.MULTILINE)
    assert int(re.findall(r"^USER (\d+)$", text, re.MULTILINE)[-1]) > 0
    assert "HEALTHCHECK" in text
    hadolint = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if hadolint is not None:
        done = subprocess.run([hadolint, str(dockerfile)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("file", [*DOCKERFILES, *SCRIPTS], ids=lambda path: str(path.relative_to(checkout.ROOT)))
def test_no_comment_ends_a_continued_command(file: Path) -> None:
    """The lines that follow such a comment would be commands of their own, and their flags be lost."""
    lines = file.read_text().splitlines()
    for number, (line, following) in enumerate(itertools.pairwise(lines), 1):
        if line.endswith("\\"):
            assert not following.lstrip().startswith("#"), f"{file}:{number + 1}"
            assert not re.search(r"\s#\s.*\\$", line), f"{file}:{number}"


def test_nothing_is_patched_with_git() -> None:
    """`git apply` leaves out what lies outside its directory, and says nothing. There are no patches here at all."""
    listed = [*DOCKERFILES, *SCRIPTS, *(checkout.ROOT / "ci").rglob("*.py"), checkout.ROOT / "noxfile.py"]
    assert [path for path in listed if re.search(r"git\W+apply|\bpatch -p", path.read_text())] == []
    assert not [path for folder in ("docker", "csrc") for path in (checkout.ROOT / folder).rglob("*.patch")]
