"""Variables that do not go together: which of them wins, or why they are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from triton_dist import env
from triton_dist.commands.env.findings import Finding, contradiction
from triton_dist.env.addresses import parse_ip_port

T = TypeVar("T")


def find(ip_port: str | None) -> Iterator[Finding]:
    """The contradictions among the variables that are set, and with the program's `ip_port` where that is known."""
    for rule in _RULES:
        yield from rule()
    yield from _port_0_and_port_range(ip_port)


def _bootstrap() -> Iterator[Finding]:
    session, name, old_name = env.SHMEM_UID_SESSION_ID, env.SHMEM_UID_SOCK_IFNAME, env.SHMEM_UID_SOCK_IFNAM
    interfaces = [variable for variable in (name, old_name) if variable.is_set()]
    if env.TRITON_DIST_SESSION.is_set() and session.is_set():
        yield contradiction(
            "the lease's session wins on simulated NPUs, the other is not used", env.TRITON_DIST_SESSION, session
        )
    if session.is_set() and interfaces:
        yield contradiction(f"{session.name} wins, the other is not read", session, *interfaces)
    if len(interfaces) == 2:
        yield contradiction(
            f"two spellings of one variable: {name.name} wins; releases of aclshmem up to early 2026 read the other",
            *interfaces,
        )
    elif interfaces == [old_name]:
        yield contradiction(f"the old spelling: releases of aclshmem from 2026 on read {name.name}", old_name)


def _port_0_and_port_range(ip_port: str | None) -> Iterator[Finding]:
    if ip_port is None:
        return
    ports = env.SHMEM_INSTANCE_PORT_RANGE
    port = parse_ip_port(ip_port)[1].port
    if port == 0 and not ports.is_set():
        yield contradiction(f"it is not set, and the port 0 of {ip_port} stands for one of it", ports, is_error=True)
    if port != 0 and ports.is_set():
        yield contradiction(f"it needs an ip_port with port 0, and {ip_port} names one: it is not used", ports)


def _build_type() -> Iterator[Finding]:
    flags = (env.DEBUG, env.REL_WITH_DEB_INFO, env.TRITON_REL_BUILD_WITH_ASSERTS, env.TRITON_BUILD_WITH_O1)
    chosen = [flag for flag in flags if _valid(flag)]
    if len(chosen) > 1:
        yield contradiction("a build has one type, choose one of them: it is refused", *chosen, is_error=True)


def _directories_of_switches() -> Iterator[Finding]:
    for switch, directory in (
        (env.TRITON_KERNEL_DUMP, env.TRITON_DUMP_DIR),
        (env.TRITON_KERNEL_OVERRIDE, env.TRITON_OVERRIDE_DIR),
    ):
        if directory.is_set() and not _valid(switch):
            yield contradiction(f"it is not used without {switch.name}=1", directory)
    if _valid(env.TRITON_KERNEL_OVERRIDE):
        path = env.TRITON_OVERRIDE_DIR.get()
        if not path.is_dir():
            yield contradiction(
                f"there is no directory {path} with files to take: set {env.TRITON_OVERRIDE_DIR.name}",
                env.TRITON_KERNEL_OVERRIDE,
            )


def _logs() -> Iterator[Finding]:
    for switch, directory in (
        (env.SHMEM_LOG_TO_STDOUT, env.SHMEM_LOG_PATH),
        (env.ASCEND_SLOG_PRINT_TO_STDOUT, env.ASCEND_PROCESS_LOG_PATH),
    ):
        if directory.is_set() and _valid(switch):
            yield contradiction("the log goes to the console, and no file is written", switch, directory)


def _ports_of_hccl() -> Iterator[Finding]:
    base, ports = env.HCCL_IF_BASE_PORT, env.HCCL_HOST_SOCKET_PORT_RANGE
    if base.is_set() and ports.is_set():
        yield contradiction(f"{ports.name} wins", base, ports)


def _interpreter() -> Iterator[Finding]:
    if _valid(env.TRITON_INTERPRET) and _valid(env.TRITON_COMPILE_ONLY):
        yield contradiction(
            "the interpreter compiles nothing: kernels run", env.TRITON_INTERPRET, env.TRITON_COMPILE_ONLY
        )


def _architectures() -> Iterator[Finding]:
    arch, simulated = env.TRITON_ASCEND_ARCH, env.TRITON_DIST_SIM_SOC
    if arch.is_set() and simulated.is_set() and arch.get() != simulated.get():
        yield contradiction(f"kernels are compiled for {arch.get()} and run on {simulated.get()}", arch, simulated)


def _numbers() -> Iterator[Finding]:
    for number, count, things in (
        (env.RANK, env.WORLD_SIZE, "ranks"),
        (env.LOCAL_RANK, env.LOCAL_WORLD_SIZE, "ranks on this host"),
        (env.SHMEM_CYCLE_PROF_PE, env.WORLD_SIZE, "PEs"),
    ):
        value, total = _valid(number), _valid(count)
        if value is not None and total is not None and value >= total:
            yield contradiction(f"there is no number {value} among {total} {things}", number, count)
    local, total = _valid(env.LOCAL_WORLD_SIZE), _valid(env.WORLD_SIZE)
    if local is not None and total is not None and local > total:
        yield contradiction("more ranks on this host than in the job", env.LOCAL_WORLD_SIZE, env.WORLD_SIZE)


def _valid(variable: env.Variable[T]) -> T | None:
    """The value of a variable that is set, or None where it is not, or not to one that is allowed."""
    if not variable.is_set():
        return None
    try:
        return variable.get()
    except env.EnvironmentVariableError:
        return None


_RULES: tuple[Callable[[], Iterator[Finding]], ...] = (
    _bootstrap,
    _build_type,
    _directories_of_switches,
    _logs,
    _ports_of_hccl,
    _interpreter,
    _architectures,
    _numbers,
)
