"""A ring of ranks, with a breakpoint in the kernel on rank 1. Run by test_interpreter.py under torchrun."""

# Arguments of kernels have no Python types, and torch gets its `npu` when it is imported.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

import shmem as ash
import torch
import torch.distributed as dist
import triton
import triton.language as tl

import triton_dist.language as dl


@triton.jit
def hello(inbox, signal, out):
    rank, world_size = dl.rank(), dl.num_ranks()
    right = (rank + 1) % world_size
    tl.store(dl.symm_at(inbox, right), 100 + rank)
    dl.notify(signal, right)
    if rank == 1:
        breakpoint()
    token = dl.wait(signal, 1, scope="gpu", semantic="acquire")
    tl.store(out, tl.load(dl.consume_token(inbox, token)))


def main() -> None:
    dist.init_process_group("hccl")
    attributes = ash.InitAttr()
    attributes.my_rank, attributes.n_ranks = dist.get_rank(), dist.get_world_size()
    attributes.local_mem_size, attributes.ip_port = 1 << 20, "tcp://127.0.0.1:8666"
    assert ash.aclshmem_init(attributes) == 0
    inbox = ash.aclshmem_create_tensor([1], dtype=torch.int32, device_id=dist.get_rank()).zero_()
    signal = ash.aclshmem_create_tensor([8], dtype=torch.int64, device_id=dist.get_rank()).zero_()
    out = torch.zeros(1, dtype=torch.int32).npu()
    dist.barrier()
    hello[(1,)](inbox, signal, out)
    print(f"rank {dist.get_rank()} heard {out.item()}", flush=True)
    dist.barrier()
    ash.aclshmem_finalize()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
