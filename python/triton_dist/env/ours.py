"""Variables of this project that act while a program runs."""

from __future__ import annotations

from . import kinds
from .variable import BOTH, HARDWARE, RUN, SIMULATED, Declare

_ours = Declare("triton-dist", RUN, acts_on=SIMULATED)

TRITON_DIST_BACKEND = _ours(
    "TRITON_DIST_BACKEND",
    kinds.choice("auto", "sim", "ascend"),
    default="auto",
    acts_on=BOTH,
    since="0.1.0",
    meaning="Where kernels run: simulated NPUs, Ascend NPUs, or Ascend NPUs if there are any.",
)
TRITON_DIST_SIM_NPUS = _ours(
    "TRITON_DIST_SIM_NPUS",
    kinds.integer(1, 1024),
    default="8",
    since="0.1.0",
    meaning="How many simulated NPUs the host has; torch.npu.device_count() gives it.",
)
TRITON_DIST_SIM_SOC = _ours(
    "TRITON_DIST_SIM_SOC",
    kinds.text("the name of a SoC, such as Ascend910B3"),
    default="Ascend910B3",
    since="0.1.0",
    meaning="The SoC whose limits and rules the simulated NPUs have.",
)
TRITON_DIST_SIM_AIC = _ours(
    "TRITON_DIST_SIM_AIC",
    kinds.integer(1),
    unset="those of the SoC",
    since="0.1.0",
    meaning="How many cube cores a simulated NPU has.",
)
TRITON_DIST_SIM_AIV = _ours(
    "TRITON_DIST_SIM_AIV",
    kinds.integer(1),
    unset="those of the SoC",
    since="0.1.0",
    meaning="How many vector cores a simulated NPU has.",
)
TRITON_DIST_SIM_WORKERS = _ours(
    "TRITON_DIST_SIM_WORKERS",
    kinds.integer(1),
    unset="chosen from the machine's cores",
    since="0.1.0",
    meaning="How many threads of a rank run the programs of its launches.",
)
TRITON_DIST_SIM_STRICT = _ours(
    "TRITON_DIST_SIM_STRICT",
    kinds.FLAG,
    default="OFF",
    since="0.1.0",
    meaning="Show as late as an NPU may what other ranks write without a quiet, a fence or a signal.",
)
TRITON_DIST_SIM_SEED = _ours(
    "TRITON_DIST_SIM_SEED",
    kinds.integer(0),
    unset="a new one each time",
    since="0.1.0",
    meaning="Seed of the choices that strict mode is free to make; the same seed makes the same ones.",
)
TRITON_DIST_KERNEL_DEBUG = _ours(
    "TRITON_DIST_KERNEL_DEBUG",
    kinds.FLAG,
    default="OFF",
    since="0.1.0",
    meaning="Compile kernels without optimisation and with line tables, so that gdb stops on their source lines.",
)
TRITON_DIST_TRACE = _ours(
    "TRITON_DIST_TRACE",
    kinds.FILE,
    since="0.1.0",
    meaning="File into which the events of all ranks are written as a trace.",
)
TRITON_DIST_SESSION = _ours(
    "TRITON_DIST_SESSION",
    kinds.text(),
    since="0.1.0",
    meaning="Rendezvous name that comes with a lease; wins over SHMEM_UID_SESSION_ID and ip_port.",
)
TRITON_DIST_SESSION_NAMESPACE = _ours(
    "TRITON_DIST_SESSION_NAMESPACE",
    kinds.FILE,
    unset="that of each rank",
    since="0.1.0",
    meaning="Network namespace in which the ranks of a lease meet, where their test has several on one machine.",
)
TRITON_DIST_JOB_SECRET = _ours(
    "TRITON_DIST_JOB_SECRET",
    kinds.SECRET,
    unset="a file of the user's, on one host",
    since="0.1.0",
    meaning="Secret by which ranks on several hosts know that they belong to one job.",
)
XDG_RUNTIME_DIR = _ours(
    "XDG_RUNTIME_DIR",
    kinds.DIRECTORY,
    owner="freedesktop.org",
    unset="a directory of the user's in /tmp",
    since="0.1.0",
    meaning="Directory of the user's for as long as the user is logged in; the secrets of jobs are kept there.",
)
TRITON_DIST_MASTER_PORT = _ours(
    "TRITON_DIST_MASTER_PORT",
    kinds.PORT,
    acts_on=BOTH,
    since="0.1.0",
    meaning="Port that comes with a lease; torch.distributed's rendezvous uses it instead of the one that the code "
    "names.",
)
TRITON_DIST_SHMEM_PORT = _ours(
    "TRITON_DIST_SHMEM_PORT",
    kinds.PORT,
    acts_on=HARDWARE,
    since="0.1.0",
    note="Within a lease, ranks on simulated NPUs meet without a port.",
    meaning="Port that comes with a lease; aclshmem's ranks meet there where code names an address on the loopback.",
)
TRITON_DIST_DEVICE_DIR = _ours(
    "TRITON_DIST_DEVICE_DIR",
    kinds.DIRECTORY,
    default="/dev",
    acts_on=BOTH,
    since="0.1.0",
    meaning="Where the device nodes of real NPUs, davinci0 and so on, are looked for.",
)
TRITON_DIST_IMAGE_CHIP = _ours(
    "TRITON_DIST_IMAGE_CHIP",
    kinds.text("a chip of docker/versions.toml, such as 910b"),
    unset="no image of this project",
    acts_on=HARDWARE,
    since="0.1.0",
    note="Simulated NPUs are of any family.",
    meaning="The chip that the image is for, which sets it; the doctor compares it with the NPUs.",
)
TRITON_DIST_NPU_SMI_TIMEOUT = _ours(
    "TRITON_DIST_NPU_SMI_TIMEOUT",
    kinds.SECONDS,
    default="10",
    acts_on=HARDWARE,
    since="0.1.0",
    note="Nobody is asked about simulated NPUs.",
    meaning="How long npu-smi may take to answer before it is killed.",
)
TRITON_DIST_LEASE_DIR = _ours(
    "TRITON_DIST_LEASE_DIR",
    kinds.DIRECTORY,
    unset="/run/lock/triton-dist where it can be used, else a directory of the host's under the system's temporary one",
    acts_on=BOTH,
    since="0.1.0",
    meaning="Where the leases of the host's NPUs are kept; all users of a host must agree on it.",
)
TRITON_DIST_CACHE_DIR = _ours(
    "TRITON_DIST_CACHE_DIR",
    kinds.DIRECTORY,
    default="~/.cache/triton-dist",
    since="0.1.0",
    meaning="Where compiled kernels and the torch device extension are cached.",
)
TRITON_DIST_DEVICE_LIBRARY = _ours(
    "TRITON_DIST_DEVICE_LIBRARY",
    kinds.FILE,
    unset="that of the installed aclshmem, AscendNPU-IR or CANN",
    acts_on=HARDWARE,
    since="0.1.0",
    note="Simulated NPUs have a device library of their own.",
    meaning="The device library that distributed kernels are linked with: a bitcode file, or a directory of them.",
)
TRITON_DIST_HEAP_TIMEOUT = _ours(
    "TRITON_DIST_HEAP_TIMEOUT",
    kinds.SECONDS,
    default="60",
    since="0.1.0",
    meaning="How long the ranks of a job wait for each other when a symmetric heap is made.",
)
TRITON_DIST_AUTOTUNE_TIMEOUT = _ours(
    "TRITON_DIST_AUTOTUNE_TIMEOUT",
    kinds.SECONDS,
    default="120",
    since="0.1.0",
    meaning="How long the ranks of a job wait for each other at each step of autotuning a kernel together.",
)
