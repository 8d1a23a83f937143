"""The ways in which aclshmem's variables write an address, an interface and a range of ports: parsers, and no more.

Nothing here asks the machine: whether a host name resolves, an interface exists or a port is free shows where it is
used.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Literal

# Linux names interfaces with up to 15 bytes that are neither white space nor one of these.
_INTERFACE = re.compile(r"[^\s/:%\[\]]{1,15}")
_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?", re.ASCII)
_HOST_NAME_LENGTH = 253

LAST_INSTANCE = 254


@dataclass(frozen=True)
class Address:
    """Where somebody listens.

    Attributes:
        host: an IPv4 address, an IPv6 address without brackets and scope, or a host name.
        port: from 0 to 65535; 0 lets the one who listens choose.
        scope: the interface, by name or number, on which a link-local IPv6 address is meant, else None.
        form: what `host` is.
    """

    host: str
    port: int
    scope: str | None
    form: Literal["ipv4", "ipv6", "name"]

    def __str__(self) -> str:
        if self.form != "ipv6":
            return f"{self.host}:{self.port}"
        scope = "" if self.scope is None else f"%{self.scope}"
        return f"[{self.host}{scope}]:{self.port}"


@dataclass(frozen=True)
class Interface:
    """A network interface, and the family of the address to take from it; None: IPv4 where it has one, else IPv6."""

    name: str
    family: Literal["inet4", "inet6"] | None

    def __str__(self) -> str:
        return self.name if self.family is None else f"{self.name}:{self.family}"


@dataclass(frozen=True)
class PortRange:
    """Ports from `start` to `end`, both included, one for each instance."""

    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.start}:{self.end}"

    def port(self, instance: int) -> int:
        """The port of an instance, from 0 to 254: `start + instance`.

        Raises:
            ValueError: there is no such instance, or the range ends before its port.
        """
        if not 0 <= instance <= LAST_INSTANCE:
            raise ValueError(f"instance {instance} is not from 0 to {LAST_INSTANCE}")
        if self.start + instance > self.end:
            raise ValueError(f"the range {self} has {self.end - self.start + 1} port(s): none for instance {instance}")
        return self.start + instance


def parse_address(text: str) -> Address:
    """The address that `ip:port`, `[ipv6]:port`, `[ipv6%scope]:port` or `hostname:port` stands for.

    Raises:
        ValueError: it is none of these; the message says what is wrong with it.
    """
    if text.startswith("["):
        inside, bracket, rest = text[1:].partition("]")
        if not bracket:
            raise ValueError("no ] after the IPv6 address")
        if not rest.startswith(":"):
            raise ValueError("no :port after the ]")
        return _ipv6(inside, _port(rest[1:]))
    host, colon, port = text.rpartition(":")
    if not colon:
        raise ValueError("no :port at its end")
    if ":" in host:
        raise ValueError("an IPv6 address stands in brackets: [ipv6]:port")
    number = _port(port)
    if not host:
        raise ValueError("no host before the port")
    if re.fullmatch(r"[0-9.]+", host, re.ASCII):
        try:
            return Address(str(ipaddress.IPv4Address(host)), number, None, "ipv4")
        except ValueError:
            raise ValueError(f"{host!r} is not an IPv4 address") from None
    labels = host.removesuffix(".").split(".")
    if len(host) > _HOST_NAME_LENGTH or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError(f"{_shortened(host)} is not a host name")
    return Address(host, number, None, "name")


def parse_ip_port(text: str) -> tuple[Literal["tcp", "tcp6"], Address]:
    """Scheme and address of an `ip_port` in aclshmem's attributes: `tcp://ip:port`, or `tcp6://[ipv6]:port`.

    Raises:
        ValueError: it is neither; the message names it and says what is wrong with it.
    """
    refusal = f"ip_port is {text!r}: it must look like tcp://127.0.0.1:8666"
    scheme, separator, place = text.partition("://")
    if not separator or scheme not in ("tcp", "tcp6"):
        raise ValueError(refusal)
    try:
        address = parse_address(place)
    except ValueError as error:
        raise ValueError(f"{refusal} ({error})") from None
    if scheme == "tcp":
        return "tcp", address
    if address.form == "ipv4":
        raise ValueError(f"{refusal} (tcp6 takes an IPv6 address in brackets, or a host name)")
    return "tcp6", address


def parse_interface(text: str) -> Interface:
    """The interface that `name`, `name:inet4` or `name:inet6` stands for.

    Raises:
        ValueError: it is none of these; the message says what is wrong with it.
    """
    name, colon, family = text.partition(":")
    if re.fullmatch(r"\d{1,3}(\.\d{1,3}){3}", name, re.ASCII) or text.startswith("["):
        raise ValueError("an address goes into SHMEM_UID_SESSION_ID, as ip:port")
    if not _INTERFACE.fullmatch(name) or len(name.encode()) > 15 or name in (".", ".."):
        raise ValueError(f"{_shortened(name)} is not the name of an interface: 1 to 15 characters")
    if not colon:
        return Interface(name, None)
    if family == "inet4":
        return Interface(name, "inet4")
    if family == "inet6":
        return Interface(name, "inet6")
    raise ValueError(f"{_shortened(family)} is no family: inet4 or inet6")


def parse_port_range(text: str) -> PortRange:
    """The range that `start:end` stands for.

    Raises:
        ValueError: it is none, has port 0 in it, or ends before it starts.
    """
    first, colon, last = text.partition(":")
    if not colon:
        raise ValueError("no : between start and end")
    start, end = _port(first), _port(last)
    if start == 0:
        raise ValueError("port 0 is no port of a range")
    if end < start:
        raise ValueError(f"it ends at {end}, before its start {start}")
    return PortRange(start, end)


def _ipv6(text: str, port: int) -> Address:
    host, percent, scope = text.partition("%")
    if percent and not _INTERFACE.fullmatch(scope):
        raise ValueError(f"{_shortened(scope)} is not the name of an interface")
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        raise ValueError(f"{_shortened(host)} is not an IPv6 address") from None
    return Address(str(address), port, scope or None, "ipv6")


def _port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text, re.ASCII) or int(text) > 65535:
        raise ValueError(f"{_shortened(text)} is not a port from 0 to 65535")
    return int(text)


def _shortened(text: str) -> str:
    """The text in quotes, cut so that a message stays one line."""
    return repr(text if len(text) <= 60 else f"{text[:60]}…")
