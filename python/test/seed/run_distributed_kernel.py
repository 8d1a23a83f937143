"""Two ranks run the kernels of distributed_kernels.py: rank 1 notifies, rank 0 waits. They meet by a unique id."""

# Torch gets its `npu` when it is imported.
# mypy: disable-error-code=attr-defined

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing.connection import Connection

import shmem as ash
import torch
from distributed_kernels import notify_kernel, wait_kernel

WORLD_SIZE = 2
HEAP_BYTES = 1 << 20
SLOT = 8  # int64 words in 64 bytes


def run_rank(rank: int, unique_id: Connection) -> None:
    """What each rank does; rank 0 makes the unique id, the other hears it."""
    torch.npu.set_device(rank)
    if rank == 0:
        uid = ash.aclshmem_get_unique_id()
        unique_id.send(uid)
    else:
        uid = unique_id.recv()
    assert ash.aclshmem_init_using_unique_id(rank, WORLD_SIZE, HEAP_BYTES, uid) == 0
    signals = ash.aclshmem_create_tensor([WORLD_SIZE * SLOT], dtype=torch.int64, device_id=rank).zero_()
    torch.npu.synchronize()
    ash.aclshmem_barrier_all()
    if rank == 0:
        wait_kernel[(1,)](signals, WORLD_SIZE)
        torch.npu.synchronize()
        print(f"rank 0 has heard from rank 1: {signals[0].item()}", flush=True)
    else:
        notify_kernel[(1,)](signals, rank)
    torch.npu.synchronize()
    ash.aclshmem_barrier_all()
    ash.aclshmem_free_tensor(signals)
    ash.aclshmem_finalize()


def main() -> int:
    """Runs both ranks; the exit code is that of the first that fails."""
    processes = multiprocessing.get_context("fork")
    ends = processes.Pipe()
    ranks = [processes.Process(target=run_rank, args=(rank, ends[rank])) for rank in range(WORLD_SIZE)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    return next((process.exitcode or 1 for process in ranks if process.exitcode != 0), 0)


if __name__ == "__main__":
    sys.exit(main())
