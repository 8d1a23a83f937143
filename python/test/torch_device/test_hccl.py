"""Backend hccl of torch.distributed on simulated NPUs, and the port at which ranks meet."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from triton_dist import env
from triton_dist.activation import after_import

HERE = Path(__file__).parent
DEADLINE_SECONDS = 240


@contextmanager
def job(*arguments: object, **environ: object) -> Iterator[subprocess.Popen[str]]:
    """A Python program with all its children in one process group, which ends with the block whatever happens."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", *map(str, arguments)],
        env=env.child_environ(**environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.mark.parametrize(("backend", "world_size"), [("hccl", 2), ("cpu:gloo,npu:hccl", 4), ("hccl", 8)])
def test_collectives(backend: str, world_size: int, tmp_path: Path) -> None:
    with job(HERE / "hccl_job.py", backend, world_size, tmp_path / "store") as ranks:
        output, _ = ranks.communicate(timeout=DEADLINE_SECONDS)
        assert ranks.returncode == 0, output


# As users write it: address and port in the code, the same in every file.
MEETING = """
import os, sys
import torch, torch.distributed as dist, torch.multiprocessing as mp

def worker(rank, world_size, init_method, number, group_is_gone):
    os.environ["MASTER_ADDR"] = "nowhere.invalid"
    os.environ["MASTER_PORT"] = "29500"
    dist.init_process_group("hccl", init_method=init_method, rank=rank, world_size=world_size)
    numbers = torch.zeros(world_size, dtype=torch.int64, device=f"npu:{rank}")
    dist.all_gather_into_tensor(numbers, torch.tensor([number], device=f"npu:{rank}"))
    assert numbers.tolist() == [number] * world_size, numbers
    dist.destroy_process_group()
    group_is_gone.wait()  # else rank 1 may still find the store of the first group
    dist.init_process_group("hccl", init_method=init_method, rank=rank, world_size=world_size)
    dist.barrier()
    dist.destroy_process_group()

if __name__ == "__main__":
    group_is_gone = mp.get_context("spawn").Barrier(2)
    mp.spawn(worker, args=(2, sys.argv[1], int(sys.argv[2]), group_is_gone), nprocs=2)
    print("met")
"""


@pytest.mark.parametrize("init_method", ["env://", "tcp://127.0.0.1:29500"])
def test_two_jobs_that_name_the_same_port_meet_at_those_of_their_leases(init_method: str, tmp_path: Path) -> None:
    program = tmp_path / "meeting.py"
    program.write_text(MEETING)
    with (
        job(program, init_method, 1, TRITON_DIST_MASTER_PORT=free_port()) as first,
        job(program, init_method, 2, TRITON_DIST_MASTER_PORT=free_port()) as second,
    ):
        for process in (first, second):
            output, _ = process.communicate(timeout=DEADLINE_SECONDS)
            assert process.returncode == 0, output
            # torch may warn before that of connections that it had to try again.
            assert output.splitlines()[-1] == "met", output


def test_the_port_of_the_lease_counts_even_if_torch_was_imported_before(run_python) -> None:  # type: ignore[no-untyped-def]
    port = free_port()
    result = run_python(
        "import torch.distributed as dist\n"
        "from triton_dist import env\n"
        f"env.apply({{'TRITON_DIST_MASTER_PORT': {port}}})\n"
        "dist.init_process_group('hccl', init_method='tcp://127.0.0.1:1', rank=0, world_size=1)\n"
        "store = dist.TCPStore('127.0.0.1', "
        f"{port}, is_master=False)\n"
        "store.set('key', 'value')\n"
        "print(store.get('key').decode())\n",
        TRITON_DIST_MASTER_PORT=None,
    )
    assert result.stdout == "value\n", result.stderr


def test_without_a_lease_the_port_is_the_one_that_the_code_names(run_python) -> None:  # type: ignore[no-untyped-def]
    port = free_port()
    result = run_python(
        "import torch.distributed as dist\n"
        f"dist.init_process_group('hccl', init_method='tcp://127.0.0.1:{port}', rank=0, world_size=1)\n"
        f"dist.TCPStore('127.0.0.1', {port}, is_master=False).set('key', 'value')\n"
        "print('met')\n",
        TRITON_DIST_MASTER_PORT=None,
    )
    assert result.stdout == "met\n", result.stderr


def test_who_comes_before_rank_0_meets_it_once_it_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's store, which finds nobody, would wait for long before it tried again."""
    port = free_port()
    monkeypatch.setenv("TRITON_DIST_MASTER_PORT", str(port))
    listening = threading.Event()

    def created(hostname: str, port: int, rank: int) -> tuple[str, int, bool]:
        return hostname, port, listening.is_set()

    rendezvous = SimpleNamespace(_create_c10d_store=created, _torchelastic_use_agent_store=lambda: False)
    after_import.use_leased_port(rendezvous)
    assert rendezvous._create_c10d_store("10.0.0.1", 29500, 0) == ("127.0.0.1", port, False)
    with socket.socket() as listener, ThreadPoolExecutor(1) as thread:
        listener.bind(("127.0.0.1", port))
        early = thread.submit(rendezvous._create_c10d_store, "10.0.0.1", 29500, 1)
        time.sleep(0.05)
        listening.set()
        listener.listen()
        assert early.result() == ("127.0.0.1", port, True)
