"""Which endpoint a job meets at: a lease's session, then SHMEM_UID_SESSION_ID, then ip_port."""

from __future__ import annotations

import pytest

from triton_dist import env
from triton_dist.runtime import session

IP_PORT = "tcp://127.0.0.1:8666"


@pytest.fixture(autouse=True)
def _no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (env.TRITON_DIST_SESSION, env.SHMEM_UID_SESSION_ID):
        monkeypatch.delenv(variable.name, raising=False)


def test_a_lease_wins_over_the_session_and_that_over_ip_port(monkeypatch: pytest.MonkeyPatch) -> None:
    other = "tcp://127.0.0.1:8667"
    assert session.endpoint(IP_PORT) != session.endpoint(other)

    monkeypatch.setenv("SHMEM_UID_SESSION_ID", "127.0.0.1:1234")
    by_session = session.endpoint(IP_PORT)
    assert by_session == session.endpoint(other) == session.endpoint("")
    monkeypatch.setenv("SHMEM_UID_SESSION_ID", "127.0.0.1:1235")
    assert session.endpoint(IP_PORT) != by_session

    monkeypatch.setenv("TRITON_DIST_SESSION", "a lease")
    by_lease = session.endpoint(IP_PORT)
    assert by_lease == session.endpoint(other) == session.endpoint("")
    monkeypatch.setenv("SHMEM_UID_SESSION_ID", "127.0.0.1:1234")
    assert session.endpoint(IP_PORT) == by_lease
    monkeypatch.setenv("TRITON_DIST_SESSION", "another lease")
    assert session.endpoint(IP_PORT) != by_lease


def test_no_two_ways_of_naming_give_one_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHMEM_UID_SESSION_ID", "127.0.0.1:1234")
    by_session = session.endpoint("")
    monkeypatch.setenv("TRITON_DIST_SESSION", "127.0.0.1:1234")
    assert session.endpoint("") != by_session


@pytest.mark.parametrize("ip_port", ["tcp://10.0.0.1:0", "tcp://localhost:65535", "tcp://[::1]:8666", "tcp6://[::1]:1"])
def test_forms_of_ip_port(ip_port: str) -> None:
    assert ip_port in session.endpoint(ip_port)


@pytest.mark.parametrize(
    "ip_port",
    ["127.0.0.1:8666", "tcp://127.0.0.1", "tcp://127.0.0.1:", "tcp://:8666", "tcp://127.0.0.1:65536", "udp://h:1"],
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
    assert value in session.endpoint("")


def test_a_malformed_session_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHMEM_UID_SESSION_ID", "127.0.0.1")
    with pytest.raises(ValueError, match=r"SHMEM_UID_SESSION_ID='127\.0\.0\.1' is not allowed"):
        session.endpoint("")


def test_nothing_to_meet_at_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"set ip_port .* in InitAttr, or SHMEM_UID_SESSION_ID"):
        session.endpoint("")
