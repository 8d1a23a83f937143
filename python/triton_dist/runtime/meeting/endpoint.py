"""Where a job meets, as its ranks say it: a TCP address, or a name within the host."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import socket
from dataclasses import dataclass
from typing import Any, Literal

from triton_dist.env.addresses import Address
from triton_dist.runtime.meeting import interfaces
from triton_dist.runtime.meeting.errors import RendezvousError


@dataclass(frozen=True)
class Endpoint:
    """Where the ranks of a job meet.

    Attributes:
        name: in words, for messages; where there is no address, also what the ranks find each other by.
        address: where rank 0 listens; None: the ranks meet by `name`, within the host.
        family: the only family that a host name may stand for; None: IPv4 first.
        job: what tells jobs at one address apart, "" where nothing does.
    """

    name: str
    address: Address | None = None
    family: Literal["inet4", "inet6"] | None = None
    job: str = ""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Place:
    """An address that a socket takes.

    Attributes:
        name: `address:port` in numbers, the same for all ways of writing it.
        family: of the socket.
        address: what `bind` and `connect` take.
    """

    name: str
    family: socket.AddressFamily
    address: tuple[Any, ...]

    @property
    def host(self) -> str:
        """The address without the port."""
        return self.name.rpartition(":")[0].strip("[]")

    def holder(self) -> str:
        """What the UNIX socket of who listens there is called."""
        return f"rank 0 at {self.name}"

    def new_socket(self) -> socket.socket:
        """A socket of the family that takes IPv6 for IPv6 only."""
        result = socket.socket(self.family, socket.SOCK_STREAM)
        if self.family == socket.AF_INET6:
            with contextlib.suppress(OSError):
                result.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        return result

    def is_of_this_host(self) -> bool:
        """Whether one can listen there, if the port is free."""
        try:
            with self.new_socket() as probe:
                probe.bind((self.address[0], 0, *self.address[2:]))
        except OSError as error:
            return error.errno != errno.EADDRNOTAVAIL and error.errno != errno.EAFNOSUPPORT
        return True

    def not_of_this_host(self) -> str:
        """Says that it is none of this host's, and what those are."""
        return f"this host has no address {self.host} (it has {', '.join(interfaces.addresses())})"


def resolve(endpoint: Endpoint) -> Place:
    """The place of an endpoint with an address; of several that a host name stands for, the first of this host's.

    Raises:
        RendezvousError: the host name stands for nothing, or the scope is no interface.
    """
    address = endpoint.address
    assert address is not None
    if address.form == "ipv6":
        scope = _scope(endpoint, address)
        return _place(socket.AF_INET6, (address.host, address.port, 0, scope))
    family = {"inet4": socket.AF_INET, "inet6": socket.AF_INET6, None: socket.AF_UNSPEC}[endpoint.family]
    try:
        found = socket.getaddrinfo(address.host, address.port, family, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise RendezvousError(f"{endpoint.name}: {address.host!r} is no host that is known here ({error})") from None
    places = [_place(kind, where) for kind, _, _, _, where in sorted(found, key=lambda item: item[0] != socket.AF_INET)]
    return next((place for place in places if len(places) > 1 and place.is_of_this_host()), places[0])


def _scope(endpoint: Endpoint, address: Address) -> int:
    """The number of the interface that an IPv6 address is meant on; 0 where it means the same on all.

    As for the kernel, and so for aclshmem, a scope that a link-local address does not need must exist and has no
    effect.
    """
    interfaces_of_host = {name: number for number, name in socket.if_nameindex()}
    scope = address.scope
    numbers = {**interfaces_of_host, **{str(number): number for number in interfaces_of_host.values()}}
    if scope is not None and scope not in numbers:
        raise RendezvousError(
            f"{endpoint.name}: interface {scope!r} is unknown: this host has {', '.join(interfaces_of_host)}"
        )
    if not ipaddress.IPv6Address(address.host).is_link_local:
        return 0
    if scope is None:
        raise RendezvousError(
            f"{endpoint.name}: the address is good for one link only: name its interface, as in "
            f"[{address.host}%{next(iter(interfaces_of_host), 'eth0')}]:{address.port}"
        )
    return numbers[scope]


def _place(family: socket.AddressFamily, where: tuple[Any, ...]) -> Place:
    host = socket.getnameinfo(where, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)[0]
    return Place(f"[{host}]:{where[1]}" if family == socket.AF_INET6 else f"{host}:{where[1]}", family, where)
