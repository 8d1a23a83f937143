"""The parsers of addresses, interfaces and ranges of ports."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_dist.env.addresses import (
    Address,
    PortRange,
    parse_address,
    parse_interface,
    parse_ip_port,
    parse_port_range,
)

T = TypeVar("T")
PORTS = st.integers(0, 65535)
LABELS = st.from_regex(r"[a-z](?:[a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
INTERFACES = st.from_regex(r"[a-z][a-z0-9._-]{0,14}", fullmatch=True)
# Texts near to what is right find more than those far from it.
NEARLY = st.text(st.sampled_from("[]:%.-/0123456789abcfinet \n\x00é"), max_size=40)


def parsed_or_refused(parse: Callable[[str], T], text: str) -> T | str:
    """What the parser makes of a text, or the words of its refusal."""
    try:
        return parse(text)
    except ValueError as refusal:
        return str(refusal)


@given(st.ip_addresses(v=4), PORTS)
def test_ipv4(host: ipaddress.IPv4Address, port: int) -> None:
    assert parse_address(f"{host}:{port}") == Address(str(host), port, None, "ipv4")


@given(st.ip_addresses(v=6), PORTS, st.one_of(st.none(), INTERFACES))
def test_ipv6(host: ipaddress.IPv6Address, port: int, scope: str | None) -> None:
    text = f"[{host.exploded}{f'%{scope}' if scope else ''}]:{port}"
    address = parse_address(text)
    assert ipaddress.IPv6Address(address.host) == ipaddress.IPv6Address(str(host))
    assert (address.port, address.scope, address.form) == (port, scope, "ipv6")


@given(st.lists(LABELS, min_size=1, max_size=5).map(".".join), PORTS)
def test_host_names(host: str, port: int) -> None:
    assert parse_address(f"{host}:{port}") == Address(host, port, None, "name")


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1:1234",
        "[6666:6666:6666:6666:6666:6666:6666:6666]:886",
        "[fe80::1%eth0]:886",
        "localhost:8888",
        "my_server.example:5555",
        "192.168.1.100:1234",
    ],
)
def test_upstreams_examples_come_back_as_they_are(text: str) -> None:
    assert str(parse_address(text)) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no :port"),
        ("127.0.0.1", "no :port"),
        ("127.0.0.1:", "'' is not a port"),
        ("127.0.0.1:70000", "'70000' is not a port"),
        ("127.0.0.1:-1", "'-1' is not a port"),
        ("127.0.0.1:１２", "is not a port"),
        ("127.0.0.256:1", "'127.0.0.256' is not an IPv4 address"),
        ("127.0.1:1", "'127.0.1' is not an IPv4 address"),
        (":1234", "no host"),
        ("::1:1234", "stands in brackets"),
        ("[::1]", "no :port after the ]"),
        ("[::1:1234", "no ] after"),
        ("[127.0.0.1]:1", "'127.0.0.1' is not an IPv6 address"),
        ("[fe80::1%]:1", "'' is not the name of an interface"),
        ("[fe80::1%a/b]:1", "'a/b' is not the name of an interface"),
        ("two words:1", "'two words' is not a host name"),
        ("-host:1", "'-host' is not a host name"),
        ("tcp://127.0.0.1:1", "brackets"),
        (f"{'a' * 64}.example:1", "is not a host name"),
        (f"{'.'.join(['label'] * 43)}:1", "is not a host name"),
    ],
)
def test_what_is_wrong_with_an_address(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r".") as refusal:
        parse_address(text)
    assert reason in str(refusal.value)
    assert len(str(refusal.value)) < 120


@given(st.one_of(st.text(), NEARLY))
def test_any_text_is_an_address_or_an_error_of_one_line(text: str) -> None:
    address = parsed_or_refused(parse_address, text)
    if isinstance(address, str):
        assert "\n" not in address
    else:
        assert 0 <= address.port <= 65535
        assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    ("text", "scheme", "host"),
    [("tcp://10.0.0.1:0", "tcp", "10.0.0.1"), ("tcp://[::1]:1", "tcp", "::1"), ("tcp6://node:1", "tcp6", "node")],
)
def test_forms_of_ip_port(text: str, scheme: str, host: str) -> None:
    found, address = parse_ip_port(text)
    assert (found, address.host) == (scheme, host)


@pytest.mark.parametrize(
    "text", ["", "10.0.0.1:1", "udp://h:1", "tcp:/h:1", "tcp://h", "tcp6://10.0.0.1:1", "tcp4://h:1"]
)
def test_what_is_no_ip_port(text: str) -> None:
    with pytest.raises(ValueError, match=f"^ip_port is {text!r}: it must look like tcp://127"):
        parse_ip_port(text)


@given(INTERFACES, st.sampled_from([None, "inet4", "inet6"]))
def test_interfaces(name: str, family: str | None) -> None:
    interface = parse_interface(name if family is None else f"{name}:{family}")
    assert (interface.name, interface.family) == (name, family)
    assert parse_interface(str(interface)) == interface


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "1 to 15 characters"),
        (":inet4", "1 to 15 characters"),
        ("a-name-that-is-too-long", "1 to 15 characters"),
        ("é" * 8, "1 to 15 characters"),
        ("eth0:", "'' is no family"),
        ("eth0:inet", "'inet' is no family"),
        ("eth0:inet4:", "'inet4:' is no family"),
        ("eth 0", "'eth 0' is not the name"),
        ("127.0.0.1:1234", "SHMEM_UID_SESSION_ID"),
        ("[6666::6666]:886", "SHMEM_UID_SESSION_ID"),
    ],
)
def test_what_is_wrong_with_an_interface(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r".") as refusal:
        parse_interface(text)
    assert reason in str(refusal.value)


@given(st.one_of(st.text(), NEARLY))
def test_any_text_is_an_interface_or_an_error_of_one_line(text: str) -> None:
    interface = parsed_or_refused(parse_interface, text)
    if isinstance(interface, str):
        assert "\n" not in interface
    else:
        assert parse_interface(str(interface)) == interface


@given(st.integers(1, 65535), st.integers(1, 65535))
def test_port_ranges(start: int, end: int) -> None:
    if end < start:
        with pytest.raises(ValueError, match="before its start"):
            parse_port_range(f"{start}:{end}")
        return
    ports = parse_port_range(f"{start}:{end}")
    assert ports == PortRange(start, end)
    assert [ports.port(k) for k in range(min(255, end - start + 1))] == list(range(start, min(start + 254, end) + 1))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no : between"),
        ("1024", "no : between"),
        ("1024-2047", "no : between"),
        (":2047", "'' is not a port"),
        ("1024:", "'' is not a port"),
        ("0:10", "port 0"),
        ("1024:65536", "'65536' is not a port"),
        ("1:2:3", "'2:3' is not a port"),
    ],
)
def test_what_is_wrong_with_a_range(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r".") as refusal:
        parse_port_range(text)
    assert reason in str(refusal.value)


def test_an_instance_beyond_the_range_or_beyond_what_there_is() -> None:
    ports = PortRange(1024, 1026)
    assert ports.port(2) == 1026
    with pytest.raises(ValueError, match=r"the range 1024:1026 has 3 port\(s\): none for instance 3"):
        ports.port(3)
    for instance in (-1, 255):
        with pytest.raises(ValueError, match=f"instance {instance} is not from 0 to 254"):
            PortRange(1, 65535).port(instance)
