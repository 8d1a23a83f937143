"""Where a job meets, and what this process waits for: the two things that others ask about a job from outside."""

from __future__ import annotations

import ipaddress
import logging
import secrets
import sys
import warnings
from dataclasses import replace
from typing import Any

from triton_dist import env
from triton_dist.env.addresses import Address, parse_address, parse_interface, parse_ip_port, parse_port_range
from triton_dist.runtime import native
from triton_dist.runtime.meeting import interfaces, reservation
from triton_dist.runtime.meeting.endpoint import Endpoint, resolve
from triton_dist.runtime.meeting.errors import RendezvousError

logger = logging.getLogger("aclshmem.rendezvous")


def endpoint(ip_port: str, instance: int = 0) -> Endpoint:
    """Where the ranks of a job meet that initialise with attributes.

    That is `ip_port` (`tcp://host:port` or `tcp6://host:port`), and SHMEM_UID_SESSION_ID where `ip_port` is empty. An
    `ip_port` with port 0 takes the port of `instance` in SHMEM_INSTANCE_PORT_RANGE. Within a lease of NPUs
    (TRITON_DIST_SESSION) the ranks meet in the lease instead, apart from those that name another endpoint there; what
    is named must be right all the same: on an Ascend NPU it would be used.

    Raises:
        ValueError: `ip_port` or a variable is malformed, or nothing names an endpoint.
    """
    if ip_port:
        found = _of_ip_port(ip_port, instance)
        for variable in (env.SHMEM_UID_SESSION_ID, env.SHMEM_UID_SOCK_IFNAME, env.SHMEM_UID_SOCK_IFNAM):
            if variable.is_set():
                logger.warning("%s does not act: ip_port is %r, and no unique id is used", variable.name, ip_port)
    elif env.SHMEM_UID_SESSION_ID.is_set():
        found = _of_session()
    elif env.TRITON_DIST_SESSION.is_set():
        return Endpoint(f"lease {env.TRITON_DIST_SESSION.get()}")
    else:
        raise ValueError(
            "no endpoint for the job: set ip_port (tcp://host:port) in InitAttr, or SHMEM_UID_SESSION_ID (host:port). "
            "SHMEM_UID_SOCK_IFNAME names no port: it acts where a unique id is used"
        )
    lease = env.TRITON_DIST_SESSION.get()
    if lease is None:
        return found
    assert found.address is not None
    return Endpoint(f"{_canonical(found.address)} in lease {lease}")


def new_unique_id() -> str:
    """What the ranks of a job share to meet by: a word that nobody else has, and where rank 0 listens.

    SHMEM_UID_SESSION_ID says where; else the interface SHMEM_UID_SOCK_IFNAME; else the first interface that is no
    loopback, docker, veth, bridge or tunnel; else the loopback. Where an interface says it, the port is one that is
    free now, and it is kept from others. Within a lease of NPUs there is no address.

    Raises:
        ValueError: a variable is malformed, or the interface is unknown or has no address of that family.
        RendezvousError: a host name or scope in SHMEM_UID_SESSION_ID is unknown, or no port is free.
    """
    word = secrets.token_hex(16)
    address: Address | None = None
    if env.SHMEM_UID_SESSION_ID.is_set():
        session = _of_session()
        if not env.TRITON_DIST_SESSION.is_set():
            # In numbers: a host name may stand for something else where another rank runs.
            address = parse_address(resolve(session).name)
        for variable in (env.SHMEM_UID_SOCK_IFNAME, env.SHMEM_UID_SOCK_IFNAM):
            if variable.is_set():
                logger.warning("%s does not act: SHMEM_UID_SESSION_ID wins over it", variable.name)
    else:
        named = _named_interface()
        if not env.TRITON_DIST_SESSION.is_set():
            address = interfaces.choose(0) if named is None else _of_interface(*named)
            try:
                port = reservation.reserve(resolve(Endpoint(str(address), address)))
            except OSError as error:
                raise RendezvousError(
                    f"no port can be had at {address.host} for rank 0 to listen at: {error}"
                ) from None
            address = replace(address, port=port)
    logger.info("unique id made: rank 0 will listen at %s", address or "no address, the job meets in its lease")
    return word if address is None else f"{word} {address}"


def endpoint_of_unique_id(unique_id: str) -> Endpoint:
    """Where the ranks meet that share a text of `new_unique_id`. Raises ValueError where it is none."""
    word, _, place = unique_id.partition(" ")
    if len(word) != 32 or not word.isalnum():
        raise ValueError("this unique id was not made by aclshmem_get_unique_id of the simulator")
    lease = env.TRITON_DIST_SESSION.get()
    if lease is not None:
        return Endpoint(f"unique id {word} in lease {lease}")
    if not place:
        return Endpoint(f"unique id {word}")
    return Endpoint(f"{place} (unique id)", parse_address(place), job=word)


def _of_ip_port(ip_port: str, instance: int) -> Endpoint:
    scheme, address = parse_ip_port(ip_port)
    if address.port == 0:
        text_of_range = env.SHMEM_INSTANCE_PORT_RANGE.get()
        if text_of_range is None:
            raise ValueError(
                f"ip_port is {ip_port!r}, and its port 0 stands for one of SHMEM_INSTANCE_PORT_RANGE=start:end, "
                "which is not set"
            )
        try:
            port = parse_port_range(text_of_range).port(instance)
        except ValueError as error:
            raise ValueError(f"SHMEM_INSTANCE_PORT_RANGE={text_of_range!r}: {error}") from None
        address = replace(address, port=port)
    return Endpoint(f"{scheme}://{address}", address, "inet6" if scheme == "tcp6" else None)


def _of_session() -> Endpoint:
    text = env.SHMEM_UID_SESSION_ID.get()
    assert text is not None
    address = parse_address(text)
    if address.port == 0:
        raise ValueError(f"SHMEM_UID_SESSION_ID={text!r} is not allowed: its port must be from 1 to 65535")
    return Endpoint(f"{address} (SHMEM_UID_SESSION_ID)", address)


def _named_interface() -> tuple[str, str] | None:
    """The variable that names an interface, and its value."""
    for variable in (env.SHMEM_UID_SOCK_IFNAME, env.SHMEM_UID_SOCK_IFNAM):
        text = variable.get()
        if text is not None:
            if variable is env.SHMEM_UID_SOCK_IFNAM:
                warnings.warn(
                    "SHMEM_UID_SOCK_IFNAM is the old spelling, which newer releases of aclshmem do not read: "
                    "set SHMEM_UID_SOCK_IFNAME",
                    UserWarning,
                    stacklevel=4,
                )
            return variable.name, text
    return None


def _of_interface(name: str, text: str) -> Address:
    try:
        return interfaces.address_of(parse_interface(text), 0)
    except ValueError as error:
        raise ValueError(f"{name}={text!r}: {error}") from None


def _canonical(address: Address) -> str:
    """An address such that the usual ways of writing it on the ranks of one job are one, without asking anybody."""
    host = address.host.lower()
    if address.form == "name":
        is_loopback = host.removesuffix(".") in ("localhost", "localhost.localdomain", "ip6-localhost")
    else:
        is_loopback = ipaddress.ip_address(host).is_loopback
    return f"loopback:{address.port}" if is_loopback else str(replace(address, host=host))


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
