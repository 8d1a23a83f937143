"""Variables of torch, and of OpenMP and gloo below it."""

from __future__ import annotations

from . import kinds
from .variable import BOTH, RUN, SIMULATED, Declare

_torch = Declare("torch", RUN, acts_on=BOTH)

TORCH_DEVICE_BACKEND_AUTOLOAD = _torch(
    "TORCH_DEVICE_BACKEND_AUTOLOAD",
    kinds.FLAG_ONE,
    default="1",
    since="torch 2.5",
    meaning="Whether `import torch` loads device backends, ours among them.",
)
MASTER_ADDR = _torch(
    "MASTER_ADDR",
    kinds.text("a host name or an address"),
    since="torch 0.2",
    meaning="Host of the rendezvous of torch.distributed.",
)
MASTER_PORT = _torch(
    "MASTER_PORT",
    kinds.integer(0, 65535),
    since="torch 0.2",
    meaning="Port of the rendezvous of torch.distributed.",
)
RANK = _torch(
    "RANK",
    kinds.integer(0),
    since="torch 0.2",
    meaning="Number of this process in its job.",
)
WORLD_SIZE = _torch(
    "WORLD_SIZE",
    kinds.integer(1),
    since="torch 0.2",
    meaning="How many processes the job has.",
)
LOCAL_RANK = _torch(
    "LOCAL_RANK",
    kinds.integer(0),
    since="torch 1.0",
    meaning="Number of this process among those of its job on this host.",
)
LOCAL_WORLD_SIZE = _torch(
    "LOCAL_WORLD_SIZE",
    kinds.integer(1),
    since="torch 1.9",
    meaning="How many processes the job has on this host.",
)
OMP_NUM_THREADS = _torch(
    "OMP_NUM_THREADS",
    kinds.integer(1),
    owner="OpenMP",
    since="OpenMP 1.0",
    meaning="Threads that an operator of torch may use; the ranks of a test get 1 where it is not set.",
)
GLOO_SOCKET_IFNAME = _torch(
    "GLOO_SOCKET_IFNAME",
    kinds.text("the name of a network interface"),
    acts_on=SIMULATED,
    since="torch 1.0",
    meaning="The interface that gloo connects ranks over; the ranks of a test get the loopback where it is not set.",
)
ASCEND_LAUNCH_BLOCKING = _torch(
    "ASCEND_LAUNCH_BLOCKING",
    kinds.FLAG,
    owner="torch_npu",
    default="0",
    since="torch_npu 2.1",
    meaning="Whether a launch returns only when the kernel has ended, with its error.",
)
