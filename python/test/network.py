"""A network of a test's own: a network namespace with the interfaces and addresses that the test needs.

    @pytest.fixture
    def network() -> Iterator[Network]:
        with Network.make({"eth0": ["192.168.1.100/24"]}) as network:
            yield network

    network.command("python", "job.py")                       # for subprocess: runs there
    light_ranks.run(function, 2, network.path)                # a rank that calls network.enter(path) is there

The namespace lives as long as a process that holds it, and that one ends with the test, also when the test is killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest

_CLONE_NEWNET = 0x40000000


@dataclass(frozen=True)
class Network:
    """A network namespace.

    Attributes:
        path: names it, for `enter`.
    """

    path: str

    @classmethod
    @contextlib.contextmanager
    def make(cls, interfaces: Mapping[str, Sequence[str]]) -> Iterator[Network]:
        """A namespace with the loopback and these interfaces, each with its addresses (`address/prefix length`).

        An interface comes up as one end of a cable whose other end has no name that says anything. Skips the test
        where this process may not make a namespace.
        """
        for program in ("ip", "unshare", "nsenter"):
            if shutil.which(program) is None:
                pytest.skip(f"no network namespace for this test: there is no {program} (Debian: iproute2, util-linux)")
        if not os.path.exists("/proc/net/if_inet6") and any(":" in each for own in interfaces.values() for each in own):
            pytest.skip("no network namespace for this test: this host has no IPv6")
        # Standard input ends when this process does; then `cat` ends, and the namespace with it.
        holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo ready; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with holder:
            assert holder.stdout is not None
            assert holder.stderr is not None
            if holder.stdout.readline() != "ready\n":
                pytest.skip(f"no network namespace for this test: {holder.stderr.read().strip()}")
            network = cls(f"/proc/{holder.pid}/ns/net")
            network._ip("link set lo up")
            for number, (interface, addresses) in enumerate(interfaces.items()):
                network._ip(f"link add {interface} type veth peer name far{number}")
                for address in addresses:
                    # Without `nodad` an IPv6 address cannot be used for a second or two.
                    network._ip(f"address add {address} dev {interface}{' nodad' if ':' in address else ''}")
                network._ip(f"link set {interface} up")
                network._ip(f"link set far{number} up")
            yield network

    def command(self, *arguments: str) -> list[str]:
        """The command that runs `arguments` in the namespace."""
        return ["nsenter", f"--net={self.path}", "--", *arguments]

    def connect(self, device: str, address: str, other: Network, far_device: str, far_address: str) -> None:
        """Lays a cable from an interface of this namespace to one of another."""
        pid = other.path.split("/")[2]
        self._ip(f"link add {device} type veth peer name {far_device} netns {pid}")
        for each, name, own in ((self, device, address), (other, far_device, far_address)):
            each._ip(f"address add {own} dev {name}")
            each._ip(f"link set {name} up")

    def _ip(self, words: str) -> None:
        subprocess.run(self.command("ip", *words.split()), check=True, timeout=30)


def enter(path: str) -> None:
    """Moves the calling thread into the namespace, and what it starts from now on."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET) != 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error), path)
    finally:
        os.close(descriptor)
