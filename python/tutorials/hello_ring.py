"""Each rank writes its number into the memory of the next rank, signals it, and waits for its own.

torchrun --nproc-per-node=4 python/tutorials/hello_ring.py
"""

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
    tl.store(dl.symm_at(inbox, right), rank)
    dl.notify(signal, right, signal=1, sig_op="set", comm_scope="intra_node")
    token = dl.wait(signal, 1, scope="gpu", semantic="acquire", waitValue=1)
    tl.store(out, tl.load(dl.consume_token(inbox, token)))


dist.init_process_group("hccl")
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.npu.set_device(rank)
attributes = ash.InitAttr()
attributes.my_rank, attributes.n_ranks = rank, world_size
attributes.local_mem_size, attributes.ip_port = 1 << 30, "tcp://127.0.0.1:8666"
assert ash.aclshmem_init(attributes) == 0

inbox = ash.aclshmem_create_tensor([1], dtype=torch.int32, device_id=rank)
signal = ash.aclshmem_create_tensor([8], dtype=torch.int64, device_id=rank)  # one slot: 64 bytes
out = torch.full([1], -1, dtype=torch.int32, device="npu")
dist.barrier()
hello[(1,)](inbox, signal, out)
print(f"rank {rank} of {world_size} heard from rank {out.item()}")

ash.aclshmem_finalize()
dist.destroy_process_group()
