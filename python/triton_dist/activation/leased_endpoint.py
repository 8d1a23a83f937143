"""aclshmem of real NPUs in a test that has a lease: its ranks meet at a port that no other test has.

Suites hard-code an address on the loopback, which is right as long as they run alone. Only such addresses are changed:
who names another host means it. On simulated NPUs the ranks meet in their lease, and nothing is changed.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from typing import Any

from triton_dist import env
from triton_dist.env.addresses import Address, parse_address, parse_ip_port


def use_leased_endpoint(shmem: Any) -> None:
    """Has the functions of the module that name or make an endpoint look at the lease first."""
    for name in ("aclshmem_init", "aclshmem_get_unique_id"):
        original = getattr(shmem, name, None)
        if original is not None:
            setattr(shmem, name, _within_lease(original))


def _within_lease(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def call(*arguments: Any, **options: Any) -> Any:
        # Read at each call: a process may get its lease after it has imported the module.
        port = env.TRITON_DIST_SHMEM_PORT.get()
        if port is not None:
            # What is malformed is left for aclshmem to refuse.
            with suppress(ValueError):
                _change_variable(port)
            for argument in (*arguments, *options.values()):
                with suppress(ValueError):
                    _change_attributes(argument, port)
        return original(*arguments, **options)

    return call


def _change_variable(port: int) -> None:
    text = env.SHMEM_UID_SESSION_ID.get()
    if text is not None and _is_loopback(address := parse_address(text)):
        env.apply({"SHMEM_UID_SESSION_ID": replace(address, port=port)})


def _change_attributes(attributes: Any, port: int) -> None:
    text = getattr(attributes, "ip_port", None)
    if isinstance(text, str) and text:
        scheme, address = parse_ip_port(text)
        # Port 0 stands for one of SHMEM_INSTANCE_PORT_RANGE, of which a test may have several.
        if address.port and _is_loopback(address):
            attributes.ip_port = f"{scheme}://{replace(address, port=port)}"


def _is_loopback(address: Address) -> bool:
    if address.form == "name":
        return address.host.lower() == "localhost"
    return ipaddress.ip_address(address.host).is_loopback
