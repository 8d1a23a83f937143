"""The examples of the page on environment variables and compiler options run exactly as they are printed there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import network
import pytest

from triton_dist import env

HERE = Path(__file__).parent
PAGE = HERE.parent / "data" / "compiler-options-example.txt"
HEARD = "rank 0 has heard from rank 1: 1\n"


@pytest.fixture
def own_network() -> Iterator[network.Network]:
    """A network in which this host has the address of the example."""
    with network.Network.make({"eth0": ["192.168.1.100/24"]}) as own:
        yield own


def environ(**changes: object) -> dict[str, str]:
    """As a user's shell has it: `python` is this one, and no lease says where to meet."""
    path = os.pathsep.join([str(Path(sys.executable).parent), env.child_environ()["PATH"]])
    return env.child_environ(PATH=path, **{"TRITON_DIST_SESSION": None, "SHMEM_UID_SESSION_ID": None, **changes})


def run(*command: str, cwd: Path = HERE, **changes: object) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=environ(**changes), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_examples_are_as_printed() -> None:
    page = PAGE.read_text()
    for name in ("distributed_kernels.py", "run.sh"):
        assert f"\n\n{(HERE / name).read_text().rstrip()}\n\n" in page


def test_the_example_of_an_environment_variable(own_network: network.Network) -> None:
    assert run(*own_network.command("sh", "-e", "run.sh")) == HEARD


def test_the_address_of_the_example_must_be_the_host_s(own_network: network.Network) -> None:
    script = (HERE / "run.sh").read_text().replace("192.168.1.100", "192.168.1.101")
    command = own_network.command("sh", "-ec", script)
    done = subprocess.run(command, cwd=HERE, env=environ(), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0
    assert "192.168.1.101:1234" in done.stderr


@pytest.mark.parametrize("handing_over", ["always", "if-named"])
def test_the_kernels_under_the_newer_calling_convention(tmp_path: Path, handing_over: str) -> None:
    session = f"127.0.0.1:{20000 + os.getpid() % 10000}"
    program = [sys.executable, "run_under_newer_triton.py", handing_over, "run_distributed_kernel.py"]
    # The cache knows nothing of the imitation, so it is a new one; but for the torch device, which takes long to build.
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "torch-device").symlink_to(env.TRITON_DIST_CACHE_DIR.get() / "torch-device")
    output = run(
        *program,
        SHMEM_UID_SESSION_ID=session,
        TRITON_CACHE_DIR=tmp_path / "triton",
        TRITON_DIST_CACHE_DIR=cache,
    )
    assert output == HEARD
