"""Variables of aclshmem (`import shmem`): its bootstrap, its log, its profile."""

from __future__ import annotations

from . import kinds
from .variable import BOTH, HARDWARE, IP_PORT, RUN, UNIQUE_ID, Declare

_aclshmem = Declare("aclshmem", RUN, acts_on=BOTH)

SHMEM_UID_SESSION_ID = _aclshmem(
    "SHMEM_UID_SESSION_ID",
    kinds.ADDRESS,
    since="aclshmem 1.0.0",
    note="hostname:port in releases from 2026 on.",
    initialisation=UNIQUE_ID,
    meaning="Where PE 0 listens for the bootstrap; wins over SHMEM_UID_SOCK_IFNAME.",
)
SHMEM_UID_SOCK_IFNAME = _aclshmem(
    "SHMEM_UID_SOCK_IFNAME",
    kinds.INTERFACE,
    unset="the first interface that is not loopback, docker, veth, bridge or tunnel",
    since="aclshmem of 2026",
    note="The name alone, without a family, in releases from 2026 on.",
    initialisation=UNIQUE_ID,
    meaning="Interface on which PE 0 listens for the bootstrap, and the family of its address.",
)
SHMEM_UID_SOCK_IFNAM = _aclshmem(
    "SHMEM_UID_SOCK_IFNAM",
    kinds.INTERFACE,
    since="aclshmem 1.0.0",
    note="Releases from 2026 on read SHMEM_UID_SOCK_IFNAME alone.",
    initialisation=UNIQUE_ID,
    meaning="The spelling of SHMEM_UID_SOCK_IFNAME in releases up to early 2026.",
)
SHMEM_INSTANCE_PORT_RANGE = _aclshmem(
    "SHMEM_INSTANCE_PORT_RANGE",
    kinds.PORT_RANGE,
    since="aclshmem of 2026",
    initialisation=IP_PORT,
    meaning="Ports of the instances: where ip_port names port 0, instance k takes start + k.",
)
SHMEM_MASTER_ADDR = _aclshmem(
    "SHMEM_MASTER_ADDR",
    kinds.text("a host name or an address"),
    acts_on=HARDWARE,
    since="shmem of 2025",
    note="Only the first Python interface reads it, which is not offered on simulated NPUs.",
    meaning="Host of the bootstrap, where the program names none.",
)
SHMEM_MASTER_PORT = _aclshmem(
    "SHMEM_MASTER_PORT",
    kinds.PORT,
    acts_on=HARDWARE,
    since="shmem of 2025",
    note="Only the first Python interface reads it, which is not offered on simulated NPUs.",
    meaning="Port of the bootstrap, where the program names none.",
)
SHMEM_LOG_LEVEL = _aclshmem(
    "SHMEM_LOG_LEVEL",
    kinds.choice("DEBUG", "INFO", "WARN", "ERROR", "FATAL"),
    default="ERROR",
    since="aclshmem 1.0.0",
    meaning="The least severe messages that are logged.",
)
SHMEM_LOG_TO_STDOUT = _aclshmem(
    "SHMEM_LOG_TO_STDOUT",
    kinds.FLAG_ONE,
    default="0",
    since="aclshmem 1.0.0",
    meaning="Log to the console instead of to files.",
)
SHMEM_LOG_PATH = _aclshmem(
    "SHMEM_LOG_PATH",
    kinds.DIRECTORY,
    default="~/shmem/log",
    since="aclshmem 1.0.0",
    meaning="Directory of the log files.",
)
SHMEM_CYCLE_PROF_PE = _aclshmem(
    "SHMEM_CYCLE_PROF_PE",
    kinds.integer(0),
    unset="none: no profile",
    since="aclshmem 1.0.0",
    meaning="The one PE whose cycles are profiled.",
)
SHMEM_HOME_PATH = _aclshmem(
    "SHMEM_HOME_PATH",
    kinds.DIRECTORY,
    acts_on=HARDWARE,
    since="shmem of 2025",
    note="Simulated NPUs need no installation of aclshmem.",
    meaning="Where aclshmem is installed; its set_env.sh sets it.",
)
