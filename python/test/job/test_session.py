"""Which endpoint a job meets at, by lease, variables and ip_port."""

from __future__ import annotations

import os

import pytest

from triton_dist import env
from triton_dist.env import addresses
from triton_dist.runtime import rendezvous, session

IP_PORT = "tcp://127.0.0.1:8666"


VARIABLES = (
    env.TRITON_DIST_SESSION,
    env.SHMEM_UID_SESSION_ID,
    env.SHMEM_UID_SOCK_IFNAME,
    env.SHMEM_UID_SOCK_IFNAM,
    env.SHMEM_INSTANCE_PORT_RANGE,
)


@pytest.fixture(autouse=True)
def _no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable.name, raising=False)


def test_ip_port_says_where_and_the_session_only_where_it_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    by_ip_port = session.endpoint(IP_PORT)
    assert by_ip_port.address == addresses.parse_address("127.0.0.1:8666")
    monkeypatch.setenv("SHMEM_UID_SESSION_ID", "127.0.0.1:1234")
    assert session.endpoint(IP_PORT) == by_ip_port
    assert session.endpoint("").address == addresses.parse_address("127.0.0.1:1234")
    monkeypatch.setenv("SHMEM_UID_SESSION_ID", "127.0.0.1:1235")
    assert session.endpoint("").address == addresses.parse_address("127.0.0.1:1235")


def test_a_lease_makes_every_endpoint_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def endpoints() -> list[str]:
        found = [session.endpoint(text) for text in (IP_PORT, "tcp://127.0.0.1:8667", "tcp://10.0.0.1:8666", "")]
        monkeypatch.setenv("SHMEM_UID_SESSION_ID", "127.0.0.1:1234")
        found.append(session.endpoint(""))
        monkeypatch.delenv("SHMEM_UID_SESSION_ID")
        assert {endpoint.address for endpoint in found} == {None}
        return [endpoint.name for endpoint in found]

    monkeypatch.setenv("TRITON_DIST_SESSION", "a lease")
    of_one = endpoints()
    assert len(set(of_one)) == 5
    monkeypatch.setenv("TRITON_DIST_SESSION", "another lease")
    assert not set(of_one) & set(endpoints())


def test_ranks_of_a_lease_may_write_one_endpoint_in_several_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DIST_SESSION", "a lease")
    ways = [IP_PORT, "tcp://localhost:8666", "tcp://LOCALHOST:8666", "tcp://[::1]:8666", "tcp6://[0:0::1]:8666"]
    assert len({session.endpoint(way).name for way in ways}) == 1
    others = ["tcp://[fd00::0:1]:1", "tcp6://[FD00::1]:1"]
    assert len({session.endpoint(way).name for way in others}) == 1


@pytest.mark.parametrize("ip_port", ["tcp://localhost:65535", "tcp://[::1]:8666", "tcp6://[::1]:1", "tcp6://node:1"])
def test_forms_of_ip_port(ip_port: str) -> None:
    endpoint = session.endpoint(ip_port)
    assert (endpoint.name, str(endpoint.address)) == (ip_port, ip_port.partition("//")[2])
    assert endpoint.family == ("inet6" if ip_port.startswith("tcp6") else None)


def test_port_0_stands_for_the_port_of_an_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"its port 0 stands for one of SHMEM_INSTANCE_PORT_RANGE.* not set"):
        session.endpoint("tcp://10.0.0.1:0")
    monkeypatch.setenv("SHMEM_INSTANCE_PORT_RANGE", "1024:1034")
    assert [session.endpoint("tcp://10.0.0.1:0", k).name for k in (0, 10)] == [
        "tcp://10.0.0.1:1024",
        "tcp://10.0.0.1:1034",
    ]
    assert session.endpoint("tcp://10.0.0.1:7", 3).name == "tcp://10.0.0.1:7"
    with pytest.raises(ValueError, match=r"SHMEM_INSTANCE_PORT_RANGE='1024:1034': .* none for instance 11"):
        session.endpoint("tcp://10.0.0.1:0", 11)
    monkeypatch.setenv("SHMEM_INSTANCE_PORT_RANGE", "1034:1024")
    with pytest.raises(ValueError, match=r"SHMEM_INSTANCE_PORT_RANGE='1034:1024' is not allowed"):
        session.endpoint("tcp://10.0.0.1:0")
    monkeypatch.setenv("TRITON_DIST_SESSION", "a lease")
    with pytest.raises(ValueError, match="SHMEM_INSTANCE_PORT_RANGE"):
        session.endpoint("tcp://10.0.0.1:0")


@pytest.mark.parametrize(
    "ip_port",
    [
        "127.0.0.1:8666",
        "tcp://127.0.0.1",
        "tcp://127.0.0.1:",
        "tcp://:8666",
        "tcp://127.0.0.1:65536",
        "udp://h:1",
        "tcp6://127.0.0.1:1",
        "tcp://::1:1",
    ],
)
@pytest.mark.parametrize("lease", [None, "a lease"])
def test_a_malformed_ip_port_is_an_error_with_a_lease_too(
    ip_port: str, lease: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lease is not None:
        monkeypatch.setenv("TRITON_DIST_SESSION", lease)
    with pytest.raises(ValueError, match=r"ip_port is '.*': it must look like tcp://127\.0\.0\.1:8666"):
        session.endpoint(ip_port)


@pytest.mark.parametrize("value", ["127.0.0.1:1234", "[6666::1]:886", "[fe80::1%eth0]:1", "localhost:8888"])
def test_forms_of_the_session(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHMEM_UID_SESSION_ID", value)
    assert str(session.endpoint("").address) == value


def test_a_malformed_session_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHMEM_UID_SESSION_ID", "127.0.0.1")
    with pytest.raises(ValueError, match=r"SHMEM_UID_SESSION_ID='127\.0\.0\.1' is not allowed"):
        session.endpoint("")


def test_a_session_needs_a_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHMEM_UID_SESSION_ID", "127.0.0.1:0")
    for call in (lambda: session.endpoint(""), session.new_unique_id):
        with pytest.raises(ValueError, match=r"SHMEM_UID_SESSION_ID='127\.0\.0\.1:0' .* port must be from 1"):
            call()


def test_a_unique_id_says_where_rank_0_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHMEM_UID_SOCK_IFNAME", "lo:inet4")
    first, second = (session.endpoint_of_unique_id(session.new_unique_id()) for _ in range(2))
    assert first.address is not None
    assert (first.address.host, first.address.port > 0) == ("127.0.0.1", True)
    assert first.job != second.job
    assert first.address != second.address

    monkeypatch.setenv("SHMEM_UID_SESSION_ID", "localhost:1234")  # wins, and is told in numbers
    assert str(session.endpoint_of_unique_id(session.new_unique_id()).address) == "127.0.0.1:1234"
    monkeypatch.setenv("TRITON_DIST_SESSION", "a lease")
    within = session.endpoint_of_unique_id(session.new_unique_id())
    assert within.address is None
    assert "in lease a lease" in within.name


def test_many_unique_ids_keep_few_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHMEM_UID_SOCK_IFNAME", "lo")
    before = len(os.listdir("/proc/self/fd"))
    assert len({session.new_unique_id().split()[1] for _ in range(200)}) > 100
    assert len(os.listdir("/proc/self/fd")) - before <= 64


def test_the_old_spelling_of_the_interface_acts_with_a_word_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHMEM_UID_SOCK_IFNAM", "lo:inet4")
    with pytest.warns(
        UserWarning, match="SHMEM_UID_SOCK_IFNAM is the old spelling.* set SHMEM_UID_SOCK_IFNAME"
    ) as said:
        unique_id = session.new_unique_id()
    assert len(said) == 1
    assert "127.0.0.1:" in unique_id


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("nosuch0", "interface 'nosuch0' is unknown: this host has .*lo"),
        ("192.168.1.1", "an address goes into SHMEM_UID_SESSION_ID"),
        ("lo:inet5", "inet4 or inet6"),
    ],
)
def test_a_wrong_interface_is_an_error(value: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHMEM_UID_SOCK_IFNAME", value)
    with pytest.raises(ValueError, match=f"SHMEM_UID_SOCK_IFNAME='{value}'.*{told}"):
        session.new_unique_id()


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("no-such-host.invalid:1", "is no host that is known here"),
        ("[fe80::1%nosuch0]:1", "'nosuch0' is unknown"),
        ("[fe80::1%4242]:1", "'4242' is unknown"),
        ("[::1%nosuch0]:1", "'nosuch0' is unknown"),
        ("[fe80::1]:1", r"good for one link only: name its interface, as in \[fe80::1%\w+\]:1$"),
    ],
)
def test_an_unknown_host_or_scope_is_an_error(value: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHMEM_UID_SESSION_ID", value)
    with pytest.raises(rendezvous.RendezvousError, match=told):
        session.new_unique_id()


def test_what_is_no_unique_id_is_refused() -> None:
    for text in ("", "short 127.0.0.1:1", f"{'x' * 32} nonsense"):
        with pytest.raises(ValueError, match=r"."):
            session.endpoint_of_unique_id(text)


def test_nothing_to_meet_at_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"set ip_port .* in InitAttr, or SHMEM_UID_SESSION_ID"):
        session.endpoint("")
