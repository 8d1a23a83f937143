"""Variables of HCCL: its ports, its time-outs, its RDMA."""

from __future__ import annotations

from . import kinds
from .variable import HARDWARE, RUN, Declare

_GLOO = "On simulated NPUs backend hccl is gloo."

_hccl = Declare("HCCL", RUN, acts_on=HARDWARE)

HCCL_RDMA_TC = _hccl(
    "HCCL_RDMA_TC",
    kinds.integer(0, 255, step=4),
    default="132",
    since="CANN 5.0.4",
    note="Simulated NPUs share memory.",
    meaning="Traffic class of RDMA, for HCCL and aclshmem.",
)
HCCL_RDMA_SL = _hccl(
    "HCCL_RDMA_SL",
    kinds.integer(0, 7),
    default="4",
    since="CANN 5.0.4",
    note="Simulated NPUs share memory.",
    meaning="Service level of RDMA, for HCCL and aclshmem.",
)
HCCL_IF_BASE_PORT = _hccl(
    "HCCL_IF_BASE_PORT",
    kinds.integer(1024, 65520),
    default="60000",
    since="CANN 5.0.4",
    note=_GLOO,
    meaning="First of the 16 ports that HCCL takes on the host.",
)
HCCL_HOST_SOCKET_PORT_RANGE = _hccl(
    "HCCL_HOST_SOCKET_PORT_RANGE",
    kinds.PORTS,
    since="CANN 8.1",
    note=_GLOO,
    meaning="Ports that HCCL takes on the host, where several processes share an NPU; wins over HCCL_IF_BASE_PORT.",
)
HCCL_NPU_SOCKET_PORT_RANGE = _hccl(
    "HCCL_NPU_SOCKET_PORT_RANGE",
    kinds.PORTS,
    since="CANN 8.1",
    note=_GLOO,
    meaning="Ports that HCCL takes on the NPU, where several processes share one.",
)
HCCL_CONNECT_TIMEOUT = _hccl(
    "HCCL_CONNECT_TIMEOUT",
    kinds.integer(120, 7200),
    default="120",
    since="CANN 5.0.4",
    note=_GLOO,
    meaning="Seconds that HCCL waits for the other ranks to connect.",
)
HCCL_EXEC_TIMEOUT = _hccl(
    "HCCL_EXEC_TIMEOUT",
    kinds.integer(0, 2147483647),
    default="1836",
    since="CANN 5.0.4",
    note=_GLOO,
    meaning="Seconds that a collective of HCCL waits for the other ranks; 0 waits for ever.",
)
