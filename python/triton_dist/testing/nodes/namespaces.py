"""Nodes where there is one machine only: network namespaces, each with a loopback and an address of its own.

A namespace lives as long as a process that holds it, and that one ends with this process, also when it is killed.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator

from triton_dist.testing.nodes.hosts import Host

_PROGRAMS = ("ip", "unshare", "nsenter")
# Nobody outside sees them.
_ADDRESS = "10.77.0.{number}"
_INTERFACE = "node"
_TIME = 30.0


class NamespaceError(RuntimeError):
    """This process may not make network namespaces, or lacks a program for it; the message says which."""


@contextlib.contextmanager
def namespaces(count: int) -> Iterator[list[Host]]:
    """`count` namespaces that reach each other, as hosts.

    Raises:
        NamespaceError: they cannot be had here.
    """
    missing = [program for program in _PROGRAMS if shutil.which(program) is None]
    if missing:
        raise NamespaceError(f"there is no {', '.join(missing)} (Debian: iproute2, util-linux)")
    with contextlib.ExitStack() as holders:
        pids = [holders.enter_context(_holder()) for _ in range(count)]
        # All are plugged into a switch in the first.
        _ip(pids[0], f"link add {_INTERFACE} type bridge")
        for number, pid in enumerate(pids):
            _ip(pid, "link set lo up")
            if number:
                _ip(pids[0], f"link add port{number} type veth peer name {_INTERFACE} netns {pid}")
                _ip(pids[0], f"link set port{number} master {_INTERFACE} up")
            _ip(pid, f"address add {_address(number)}/24 dev {_INTERFACE}")
            _ip(pid, f"link set {_INTERFACE} up")
        yield [
            Host(f"node{number}", _address(number), ("nsenter", f"--net=/proc/{pid}/ns/net", "--", "{command}"))
            for number, pid in enumerate(pids)
        ]


@contextlib.contextmanager
def _holder() -> Iterator[int]:
    """The pid of a process that has a network namespace of its own."""
    # Standard input ends when this process does; then `cat` ends, and the namespace with it.
    process = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "echo ready; exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        if process.stdout.readline() != "ready\n":
            raise NamespaceError(process.stderr.read().strip())
        yield process.pid


def _address(number: int) -> str:
    return _ADDRESS.format(number=number + 1)


def _ip(pid: int, words: str) -> None:
    command = ["nsenter", f"--net=/proc/{pid}/ns/net", "--", "ip", *words.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIME, check=False)
    if done.returncode:
        raise NamespaceError(f"`ip {words}`: {done.stderr.strip()}")
