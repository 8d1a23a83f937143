"""A job of several ranks that tries the backend hccl: `hccl_job.py <backend> <world size> <file to meet at>`.

The ranks are forks of one process that has imported torch and run nothing: fresh ones would take ten times as long.
Every rank does every check of this file; what a rank finds wrong it prints, and ends with status 1.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import sys
import traceback
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as functional

Check = Callable[[int, int, torch.device], None]


def full(value: float, device: torch.device, size: int = 3, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full((size,), float(value), dtype=dtype, device=device)


def check_allreduce(rank: int, world: int, device: torch.device) -> None:
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8):
        tensor = full(rank + 1, device, dtype=dtype)
        dist.all_reduce(tensor)
        assert tensor.tolist() == [world * (world + 1) / 2] * 3
        assert tensor.device == device
    for op, expected in ((dist.ReduceOp.MAX, world), (dist.ReduceOp.MIN, 1)):
        tensor = full(rank + 1, device)
        dist.all_reduce(tensor, op=op)
        assert tensor.tolist() == [expected] * 3


def check_allreduce_of_a_view(rank: int, world: int, device: torch.device) -> None:
    base = torch.zeros(4, 3, device=device)
    dist.all_reduce(base[1:3].fill_(1))
    assert base.sum().item() == 6 * world


def check_async(rank: int, world: int, device: torch.device) -> None:
    tensor = full(1, device)
    work = dist.all_reduce(tensor, async_op=True)
    assert work is not None
    work.wait()
    assert work.is_completed()
    assert tensor.tolist() == [world] * 3
    work = dist.all_reduce(tensor, async_op=True)
    assert work is not None
    (result,) = work.get_future().wait()
    assert result is tensor
    assert tensor.tolist() == [world * world] * 3
    # Several under way at once, with nobody else holding on to the tensors.
    works = [dist.all_reduce(full(1, device, 1000), async_op=True) for _ in range(5)]
    for work in works:
        assert work is not None
        work.wait()
        assert work.result()[0][999].item() == world


def check_rooted(rank: int, world: int, device: torch.device) -> None:
    root = world - 1
    tensor = full(rank, device)
    dist.broadcast(tensor, root)
    assert tensor.tolist() == [root] * 3
    tensor = full(1, device)
    dist.reduce(tensor, 0)
    assert rank != 0 or tensor.tolist() == [world] * 3
    gathered = [torch.empty(3, device=device) for _ in range(world)] if rank == 0 else None
    dist.gather(full(rank, device), gathered, 0)
    assert gathered is None or [int(t[0]) for t in gathered] == list(range(world))
    part = torch.empty(3, device=device)
    dist.scatter(part, [full(i, device) for i in range(world)] if rank == 0 else None, 0)
    assert part.tolist() == [rank] * 3


def check_gathers(rank: int, world: int, device: torch.device) -> None:
    parts = [torch.empty(3, device=device) for _ in range(world)]
    dist.all_gather(parts, full(rank, device))
    assert [part.tolist() for part in parts] == [[i] * 3 for i in range(world)]
    whole = torch.empty(3 * world, device=device)
    dist.all_gather_into_tensor(whole, full(rank, device))
    assert whole[::3].tolist() == list(range(world))


def check_reduce_scatter(rank: int, world: int, device: torch.device) -> None:
    part = torch.empty(2, device=device)
    dist.reduce_scatter_tensor(part, torch.arange(2.0 * world, device=device))
    assert part.tolist() == [world * 2 * rank, world * (2 * rank + 1)]
    dist.reduce_scatter(part, [full(i, device, 2) for i in range(world)])
    assert part.tolist() == [world * rank] * 2


def check_all_to_all(rank: int, world: int, device: torch.device) -> None:
    received = torch.empty(world, device=device)
    dist.all_to_all_single(received, rank * world + torch.arange(world, device=device, dtype=torch.float32))
    assert received.tolist() == [i * world + rank for i in range(world)]
    # Rank r sends r + 1 elements to everyone.
    sizes = [i + 1 for i in range(world)]
    received = torch.empty(sum(sizes), device=device)
    dist.all_to_all_single(received, full(rank, device, (rank + 1) * world), sizes, [rank + 1] * world)
    assert received.tolist() == [float(i) for i in range(world) for _ in range(i + 1)]
    parts = [torch.empty(1, 2, device=device) for _ in range(world)]
    dist.all_to_all(parts, [torch.full((1, 2), float(rank * world + i), device=device) for i in range(world)])
    assert [int(part[0, 1]) for part in parts] == [i * world + rank for i in range(world)]


def check_point_to_point(rank: int, world: int, device: torch.device) -> None:
    right, left = (rank + 1) % world, (rank - 1) % world
    received = torch.empty(2, device=device)
    sends, receives = dist.isend(full(rank, device, 2), right), dist.irecv(received, left)
    for work in (sends, receives):
        assert work is not None
        work.wait()
    assert received.tolist() == [left] * 2
    # From whoever sends; the tag keeps it apart from what others send next.
    if rank == 0:
        assert dist.recv(received, tag=7) == 1
        assert received.tolist() == [5, 5]
    elif rank == 1:
        dist.send(full(5, device, 2), 0, tag=7)
    operations = [dist.P2POp(dist.isend, full(rank, device, 2), right), dist.P2POp(dist.irecv, received, left)]
    for request in dist.batch_isend_irecv(operations):
        request.wait()
    assert received.tolist() == [left] * 2


def check_objects(rank: int, world: int, device: torch.device) -> None:
    everyone: list[Any] = [None] * world
    dist.all_gather_object(everyone, {"rank": rank})
    assert everyone == [{"rank": i} for i in range(world)]
    said: list[Any] = ["hello" if rank == 0 else None]
    dist.broadcast_object_list(said, 0)
    assert said == ["hello"]
    mine: list[Any] = [None]
    dist.scatter_object_list(mine, [f"for {i}" for i in range(world)] if rank == 0 else None, 0)
    assert mine == [f"for {rank}"]


def check_groups_and_barriers(rank: int, world: int, device: torch.device) -> None:
    pair = dist.new_group([0, 1])
    if rank < 2:
        tensor = full(1, device)
        dist.all_reduce(tensor, group=pair)
        assert tensor.tolist() == [2] * 3
        dist.barrier(group=pair)
    dist.barrier()
    dist.barrier(device_ids=[rank])
    assert dist.get_backend() == dist.get_backend(dist.group.WORLD)


def check_functional(rank: int, world: int, device: torch.device) -> None:
    group = dist.group.WORLD
    assert group is not None
    assert functional.all_reduce(full(1, device), "sum", group).tolist() == [world] * 3
    assert functional.all_gather_tensor(full(rank, device, 1), 0, group).tolist() == list(range(world))
    assert functional.reduce_scatter_tensor(full(1, device, world), "sum", 0, group).tolist() == [world]


def check_coalesced(rank: int, world: int, device: torch.device) -> None:
    first, second = full(1, device), full(2, device, 5)
    with dist.distributed_c10d._coalescing_manager(device=device):
        dist.all_reduce(first)
        dist.all_reduce(second)
    assert (first.tolist(), second.tolist()) == ([world] * 3, [2 * world] * 5)


def check_data_parallel(rank: int, world: int, device: torch.device) -> None:
    torch.manual_seed(rank)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2).to(device), device_ids=[rank])
    model(full(rank, device).unsqueeze(0)).sum().backward()
    gradient = model.module.weight.grad
    assert isinstance(gradient, torch.Tensor)
    assert gradient.device == device
    assert gradient.tolist() == [[(world - 1) / 2] * 3] * 2


def check_cpu_tensors(rank: int, world: int, device: torch.device) -> None:
    tensor = torch.ones(2)
    if "cpu" in dist.get_backend():
        dist.all_reduce(tensor)
        assert tensor.tolist() == [world] * 2
    else:
        with pytest.raises(RuntimeError, match="No backend type associated with device type cpu"):
            dist.all_reduce(tensor)


def checks() -> list[Check]:
    return [value for name, value in sorted(globals().items()) if name.startswith("check_")]


def run_rank(backend: str, rank: int, world: int, file: str) -> None:
    try:
        dist.init_process_group(
            backend, init_method=f"file://{file}", rank=rank, world_size=world, timeout=timedelta(seconds=60)
        )
        torch.npu.set_device(rank)  # type: ignore[attr-defined]
        for check in checks():
            check(rank, world, torch.device("npu", rank))
        dist.barrier()
        dist.destroy_process_group()
    except BaseException:
        print(f"rank {rank} of {world}:\n{traceback.format_exc()}", flush=True)
        sys.exit(1)


def main() -> int:
    backend, world, file = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    context = multiprocessing.get_context("fork")
    ranks = [context.Process(target=run_rank, args=(backend, rank, world, file)) for rank in range(world)]
    for process in ranks:
        process.start()
    waiting = list(ranks)
    failed = False
    while waiting and not failed:
        multiprocessing.connection.wait([process.sentinel for process in waiting])
        for process in [process for process in waiting if process.exitcode is not None]:
            waiting.remove(process)
            if process.exitcode != 0:
                print(f"rank {ranks.index(process)} ended with status {process.exitcode}", flush=True)
                failed = True
    for process in waiting:
        process.kill()
        process.join()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
