"""Where a job meets, and what this process waits for: the two things that others ask about a job from outside."""

from __future__ import annotations

import re
import sys
from typing import Any

from triton_dist import env
from triton_dist.runtime import native

_HOST = r"(?:\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\]|[\w.-]+)"
_ADDRESS = re.compile(rf"{_HOST}:(\d{{1,5}})", re.ASCII)


def endpoint(ip_port: str) -> str:
    """The name of the place where the ranks of a job meet.

    A lease's session (TRITON_DIST_SESSION) wins over SHMEM_UID_SESSION_ID, and that over `ip_port`, which looks like
    `tcp://127.0.0.1:8666`. An `ip_port` that is given must be right even where it does not decide: on an Ascend NPU
    it would be used.

    Raises:
        ValueError: `ip_port` or SHMEM_UID_SESSION_ID is malformed, or nothing names an endpoint.
    """
    if ip_port:
        scheme, separator, address = ip_port.partition("://")
        if scheme not in ("tcp", "tcp6") or not separator or not _is_address(address):
            raise ValueError(f"ip_port is {ip_port!r}: it must look like tcp://127.0.0.1:8666")
    session = env.TRITON_DIST_SESSION.get()
    if session is not None:
        return f"lease {session}"
    session = env.SHMEM_UID_SESSION_ID.get()
    if session is not None:
        if not _is_address(session):
            raise ValueError(
                f"SHMEM_UID_SESSION_ID={session!r} is not allowed: it takes {env.SHMEM_UID_SESSION_ID.allowed}"
            )
        return f"session {session}"
    if not ip_port:
        raise ValueError(
            "no endpoint for the job: set ip_port (tcp://host:port) in InitAttr, or SHMEM_UID_SESSION_ID (host:port)"
        )
    return ip_port


def _is_address(text: str) -> bool:
    match = _ADDRESS.fullmatch(text)
    return match is not None and int(match[1]) <= 65535


def describe_waits() -> list[dict[str, Any]]:
    """What the programs and host calls of this process wait for now, one item each (see tdist_sim.h for the keys).

    May be called from any thread, also while the others wait. Empty where nothing has run on a simulated NPU.
    """
    if native.library.cache_info().currsize == 0:
        return []
    interpreted = sys.modules.get("triton_dist.interpreter.turns")
    # While a kernel is interpreted, its host waits on behalf of its programs, and these say more.
    waits: list[dict[str, Any]] = interpreted.describe_waits() if interpreted is not None else []
    return waits or native.library().describe_waits()
