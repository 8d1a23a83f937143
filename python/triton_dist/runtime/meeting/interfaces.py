"""The network interfaces of this host, and which address of them rank 0 listens at."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from dataclasses import dataclass
from pathlib import Path

import psutil

from triton_dist.env.addresses import Address, Interface

# Interfaces that lead to containers, virtual machines and tunnels. The kernel tells some kinds, names tell the others.
_SKIPPED_NAMES = (
    "docker", "veth", "br-", "virbr", "lxc", "lxdbr", "cni", "flannel", "cali", "podman", "kube",
    "tun", "tap", "tunl", "sit", "ip6tnl", "gre", "gretap", "wg", "vxlan", "geneve",
)  # fmt: skip
# ARPHRD_TUNNEL, _TUNNEL6, _SIT, _IPGRE, _IP6GRE, _NONE (of tun and WireGuard).
_TUNNEL_TYPES = {768, 769, 776, 778, 823, 65534}
_LOOPBACK = "lo"


@dataclass(frozen=True)
class _Own:
    """An interface that is up, with its addresses by family, the best first."""

    name: str
    inet4: list[str]
    inet6: list[str]

    def first(self, family: str | None) -> str | None:
        addresses = {"inet4": self.inet4, "inet6": self.inet6, None: self.inet4 + self.inet6}[family]
        return addresses[0] if addresses else None


def address_of(interface: Interface, port: int) -> Address:
    """The address of an interface that the user names.

    Raises:
        ValueError: there is no such interface, it is down, or it has no address of that family.
    """
    interfaces = _of_this_host()
    for own in interfaces:
        if own.name == interface.name:
            break
    else:
        known = ", ".join(own.name for own in interfaces)
        state = "down" if interface.name in {name for _, name in socket.if_nameindex()} else "unknown"
        raise ValueError(f"interface {interface.name!r} is {state}: this host has {known or 'none that is up'}")
    found = own.first(interface.family)
    if found is None:
        family = {"inet4": "IPv4 address", "inet6": "IPv6 address", None: "address"}[interface.family]
        has = ", ".join(own.inet4 + own.inet6)
        raise ValueError(f"interface {own.name!r} has no {family}: it has {has or 'none at all'}")
    return _address(found, port)


def choose(port: int) -> Address:
    """The address of the first interface that is no loopback, docker, veth, bridge or tunnel; else of the loopback.

    Addresses that are good for one link only do not count: an interface has one without anybody having given it.

    Raises:
        ValueError: this host has no address.
    """
    interfaces = _of_this_host()
    usable = [own for own in interfaces if own.name != _LOOPBACK and not _is_skipped(own.name)]
    for own in (*usable, *(own for own in interfaces if own.name == _LOOPBACK)):
        found = own.first(None)
        if found is not None and "%" not in found:
            return _address(found, port)
    raise ValueError("this host has no interface with an address, not even a loopback that is up")


def addresses() -> list[str]:
    """All addresses of this host."""
    return [address for own in _of_this_host() for address in (*own.inet4, *own.inet6)]


def _of_this_host() -> list[_Own]:
    """Interfaces that are up, in the kernel's order."""
    states = psutil.net_if_stats()
    result = []
    by_name = psutil.net_if_addrs()
    for _, name in socket.if_nameindex():
        state = states.get(name)
        if state is None or not state.isup:
            continue
        inet4 = [entry.address for entry in by_name.get(name, []) if entry.family == socket.AF_INET]
        inet6 = [_with_scope(entry.address, name) for entry in by_name.get(name, []) if entry.family == socket.AF_INET6]
        # A link-local address is good for one link only.
        result.append(_Own(name, inet4, sorted(inet6, key=lambda address: "%" in address)))
    return result


def _with_scope(address: str, interface: str) -> str:
    host = address.partition("%")[0]
    return f"{host}%{interface}" if ipaddress.IPv6Address(host).is_link_local else host


def _address(text: str, port: int) -> Address:
    host, _, scope = text.partition("%")
    return Address(host, port, scope or None, "ipv6" if ":" in host else "ipv4")


def _is_skipped(name: str) -> bool:
    if name.startswith(_SKIPPED_NAMES):
        return True
    kind = Path("/sys/class/net", name)
    if (kind / "bridge").is_dir() or (kind / "tun_flags").exists():
        return True
    with contextlib.suppress(OSError, ValueError):
        return int((kind / "type").read_text()) in _TUNNEL_TYPES
    return False
