"""Suites to measure, and runs of pytest on them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from triton_dist import env

# What a public suite has: an own fixture, and all of it anew for each test.
SPAWNING_CONFTEST = """
import os
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

def pytest_configure(config):
    config.addinivalue_line("markers", "dist: a multi-rank test")

def start(rank, fn, world_size, backend, args):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", "29500"
    torch.npu.set_device(rank)
    dist.init_process_group(backend, rank=rank, world_size=world_size)
    try:
        fn(rank, world_size, *args)
    finally:
        dist.destroy_process_group()

@pytest.fixture
def dist_test():
    def run(fn, world_size=2, backend="hccl", args=()):
        mp.spawn(start, args=(fn, world_size, backend, args), nprocs=world_size)
    return run
"""

# What each test took, in seconds, to more digits than reports have.
RECORDING_CONFTEST = """
import json
import pathlib

SECONDS = {}

def pytest_runtest_logreport(report):
    SECONDS[report.location[2]] = SECONDS.get(report.location[2], 0.0) + report.duration

def pytest_unconfigure(config):
    pathlib.Path("seconds.json").write_text(json.dumps(SECONDS))
"""

NOTIFY_AND_WAIT = """
import pytest
import shmem as ash
import torch
import torch.distributed as dist
import triton
import triton.language as tl
import triton_dist.language as dl

@triton.jit
def send(data, signal, number):
    tl.store(dl.symm_at(data, 0), number)
    dl.notify(signal, 0, signal=1, sig_op="set", comm_scope="intra_node")

@triton.jit
def receive(data, signal, out):
    token = dl.wait(signal, 1, scope="gpu", semantic="acquire", waitValue=1)
    tl.store(out, tl.load(dl.consume_token(data, token)))

def worker(rank, world_size, number):
    attributes = ash.InitAttr()
    attributes.my_rank, attributes.n_ranks = rank, world_size
    attributes.local_mem_size, attributes.ip_port = 1 << 22, "tcp://127.0.0.1:8666"
    assert ash.aclshmem_init(attributes) == 0
    data = ash.aclshmem_create_tensor([1], dtype=torch.int32, device_id=rank).zero_()
    signal = ash.aclshmem_create_tensor([8], dtype=torch.int64, device_id=rank).zero_()
    torch.npu.synchronize()
    dist.barrier()
    if rank == 0:
        out = torch.zeros(1, dtype=torch.int32).npu()
        receive[1, 1, 1](data, signal, out)
        assert out.item() == 1000 + number
    else:
        send[1, 1, 1](data, signal, 1000 + number)
    dist.barrier()
    ash.aclshmem_free_tensor(data)
    ash.aclshmem_free_tensor(signal)
    ash.aclshmem_finalize()

@pytest.mark.dist
@pytest.mark.parametrize("number", range({tests}))
def test_notify_and_wait(dist_test, number):
    dist_test(worker, world_size=2, args=(number,))
"""

EMPTY = """
import pytest

def worker(rank, world_size):
    pass

@pytest.mark.dist
@pytest.mark.parametrize("number", range({tests}))
def test_on_ranks(dist_test, number):
    dist_test(worker, world_size=2)

@pytest.mark.parametrize("number", range({tests}))
def test_plain(number):
    pass
"""

SLEEPING_AND_COMPUTING = """
import time
import pytest
import torch

def sleeps(rank, world_size, number):
    time.sleep(0.1 + 0.01 * (number % 30))

def computes(rank, world_size, number):
    matrix = torch.ones(64, 64)
    for _ in range(200 + 20 * (number % 30)):
        matrix = matrix @ matrix / 64

@pytest.mark.dist
@pytest.mark.parametrize("worker", [sleeps, computes])
@pytest.mark.parametrize("world_size", [1, 2, 4, 8])
@pytest.mark.parametrize("number", range({tests} // 8))
def test_it(dist_test, worker, world_size, number):
    dist_test(worker, world_size=world_size, args=(number,))
"""


class Suite:
    """A directory of tests, with simulated NPUs that nobody else has."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("pytest.ini", "[pytest]\n")

    def write(self, name: str, text: str) -> None:
        (self.path / name).write_text(text)

    def run(self, *arguments: str) -> tuple[float, str]:
        """Runs pytest; the seconds that the whole process took, and what it printed.

        Raises:
            RuntimeError: a test failed.
        """
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:randomly",
            "-p",
            "no:hypothesispytest",
            "--color=no",
            *arguments,
        ]
        environ = env.child_environ(TRITON_DIST_LEASE_DIR=self.path / "leases", PYTEST_ADDOPTS=None)
        began = time.monotonic()
        done = subprocess.run(command, cwd=self.path, env=environ, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - began
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
        return seconds, done.stdout


@contextmanager
def suite(text: str) -> Iterator[Suite]:
    """A suite of one test file, which goes with the block."""
    with TemporaryDirectory(prefix="triton-dist-bench-") as directory:
        made = Suite(Path(directory))
        made.write("test_it.py", text)
        yield made
