"""Where a node is, as far as it matters for whether its simulated NPUs can share memory with those of another."""

from __future__ import annotations

import os
from typing import Any

from triton_dist.testing.leases.directory import host_identity

Place = dict[str, Any]


def own() -> Place:
    """Of this process: its host, its network namespace and its number."""
    return {"host": host_identity(), "namespace": _inode(os.getpid()), "pid": os.getpid()}


def meeting(first: Place, session: str) -> dict[str, object]:
    """The variables by which ranks of this node meet those of the first, which is at `first`, in the same lease.

    None of them where that cannot be: on another host simulated NPUs cannot share memory, and real ones meet at the
    address that the test names.
    """
    here = own()
    if first["host"] != here["host"]:
        return {"TRITON_DIST_SESSION": None}
    if first["namespace"] == here["namespace"]:
        return {"TRITON_DIST_SESSION": session}
    if os.geteuid() != 0 or _inode(first["pid"]) != first["namespace"]:
        # Ranks may not make their sockets there.
        return {"TRITON_DIST_SESSION": None}
    return {"TRITON_DIST_SESSION": session, "TRITON_DIST_SESSION_NAMESPACE": _file(first["pid"])}


def _file(pid: int) -> str:
    return f"/proc/{pid}/ns/net"


def _inode(pid: int) -> int | None:
    """The number of the network namespace of a process; None where it cannot be seen."""
    try:
        return os.stat(_file(pid)).st_ino
    except OSError:
        return None
