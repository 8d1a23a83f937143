"""Where rank 0 listens on hosts with several interfaces, and ranks that are not on one host."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import host_api
import light_ranks
import network
import pytest

from triton_dist.runtime import job, session
from triton_dist.runtime.meeting import interfaces
from triton_dist.shims import shmem as ash

MIB = 1 << 20


def in_network(path: str, function: Callable[..., Any], *arguments: Any) -> Any:
    network.enter(path)
    return function(*arguments)


def there(own: network.Network, function: Callable[..., Any], *arguments: Any, **environment: str) -> Any:
    """What `function` returns in the network, or the error that it ends with."""
    (outcome,) = light_ranks.run(in_network, [(own.path, function, *arguments)], environment=environment)
    return outcome.error or outcome.value


def chosen() -> str:
    return str(interfaces.choose(1))


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ({}, "127.0.0.1:1"),
        ({"eth0": ["192.168.1.100/24", "fd00::100/64"]}, "192.168.1.100:1"),
        ({"eth0": ["fd00::100/64"]}, "[fd00::100]:1"),
        # In the kernel's order; those that lead to containers, virtual machines and tunnels do not count.
        (
            {
                "docker0": ["172.17.0.1/16"],
                "veth12": ["10.1.0.1/24"],
                "br-3f": ["10.2.0.1/24"],
                "tun0": ["10.3.0.1/24"],
                "enp2s0": ["192.168.7.1/24"],
                "enp3s0": ["192.168.8.1/24"],
            },
            "192.168.7.1:1",
        ),
        ({"docker0": ["172.17.0.1/16"]}, "127.0.0.1:1"),
    ],
)
def test_the_first_interface_of_the_hosts_own_is_chosen(devices: dict[str, list[str]], expected: str) -> None:
    with network.Network.make(devices) as own:
        assert there(own, chosen) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("eth0:inet4", "192.168.1.100"),
        ("eth0", "192.168.1.100"),
        ("eth0:inet6", "[fd00::100]"),
        ("eth1", "[fd00::200]"),
        (
            "eth1:inet4",
            "ValueError: SHMEM_UID_SOCK_IFNAME='eth1:inet4': interface 'eth1' has no IPv4 address: it has fd00::200",
        ),
        ("eth2", "ValueError: SHMEM_UID_SOCK_IFNAME='eth2': interface 'eth2' is unknown: this host has lo, "),
    ],
)
def test_the_interface_of_the_variable(value: str, expected: str) -> None:
    with network.Network.make({"eth0": ["192.168.1.100/24", "fd00::100/64"], "eth1": ["fd00::200/64"]}) as own:
        found = there(own, session.new_unique_id, SHMEM_UID_SOCK_IFNAME=value)
        assert expected in found


def make_unique_id_and_join(path: str, rank: int, world_size: int, gate: str) -> int:
    """Rank 0 makes the unique id and sends it to the others, by a file here."""
    network.enter(path)
    if rank == 0:
        unique_id = ash.aclshmem_get_unique_id()
        with open(f"{gate}.part", "wb") as file:
            file.write(unique_id)
        os.rename(f"{gate}.part", gate)
    else:
        light_ranks.wait_for(lambda: os.path.exists(gate))
        with open(gate, "rb") as file:
            unique_id = file.read()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ash.aclshmem_init_using_unique_id(rank, world_size, MIB, unique_id)
    word = ash.aclshmem_calloc(16, 4)
    ash.aclshmem_int32_p(word, rank + 1, (rank + 1) % world_size)
    ash.aclshmem_barrier_all()
    value = int(host_api.int32s(word, 1)[0])
    ash.aclshmem_finalize()
    return value


@pytest.mark.parametrize(
    "environment",
    [
        {"SHMEM_UID_SESSION_ID": "192.168.1.100:1234"},
        {"SHMEM_UID_SESSION_ID": "[fd00::100]:886"},
        {"SHMEM_UID_SOCK_IFNAME": "eth0:inet4"},
        {"SHMEM_UID_SOCK_IFNAME": "eth0:inet6"},
        {},
    ],
)
def test_ranks_meet_at_the_address_of_their_unique_id(environment: dict[str, str], tmp_path: Any) -> None:
    with network.Network.make({"eth0": ["192.168.1.100/24", "fd00::100/64"]}) as own:
        calls = [(own.path, rank, 3, str(tmp_path / "id")) for rank in range(3)]
        outcomes = light_ranks.run(make_unique_id_and_join, calls, environment=environment)
        assert light_ranks.values(outcomes) == [3, 1, 2]


def try_to_join(path: str, rank: int, world_size: int, ip_port: str) -> str:
    network.enter(path)
    attributes = ash.InitAttr()
    attributes.my_rank, attributes.n_ranks, attributes.local_mem_size = rank, world_size, MIB
    attributes.ip_port = ip_port
    attributes.option_attr.shm_init_timeout = 5
    return host_api.error(ash.aclshmem_init, attributes)


def test_ranks_of_two_network_namespaces_are_told_that_they_cannot_share_memory() -> None:
    with network.Network.make({"eth0": ["192.168.1.100/24"]}) as one, network.Network.make({}) as other:
        one.connect("eth1", "10.0.0.1/24", other, "eth0", "10.0.0.2/24")
        calls = [(one.path, 0, 2, "tcp://10.0.0.1:1234"), (other.path, 1, 2, "tcp://10.0.0.1:1234")]
        for text in light_ranks.values(light_ranks.run(try_to_join, calls)):
            assert "RendezvousError: rank 1 (process " in text
            assert "runs in another network namespace" in text
            assert "simulated NPUs share the memory of one host" in text


def test_rank_0_in_the_wrong_place_is_told_to_all() -> None:
    with network.Network.make({"eth0": ["192.168.1.100/24"]}) as own:
        calls = [(own.path, rank, 2, "tcp://192.168.1.101:1234") for rank in range(2)]
        for text in light_ranks.values(light_ranks.run(try_to_join, calls)):
            assert "rank 0 cannot listen at tcp://192.168.1.101:1234: this host has no address 192.168.1.101" in text
            assert "192.168.1.100" in text


def join_as_instance(path: str, rank: int, world_size: int, instances: list[int]) -> list[Any]:
    network.enter(path)
    seen: list[Any] = []
    for instance in instances:
        attributes = ash.InitAttr()
        attributes.my_rank, attributes.n_ranks, attributes.local_mem_size = rank, world_size, MIB
        attributes.ip_port, attributes.instance_id = "tcp://127.0.0.1:0", instance
        ash.aclshmem_init(attributes)
        seen.append((ash.core.current_instance(), job.require("test").endpoint))
        attributes.instance_id = (instance + 1) % 255
        seen.append(host_api.error(ash.aclshmem_init, attributes).split(":")[0])
        seen.append(host_api.error(ash.aclshmemx_finalize, (instance + 1) % 255).split(":")[0])
        ash.aclshmemx_finalize(instance)
    return seen


def test_an_instance_takes_its_port_of_the_range() -> None:
    with network.Network.make({}) as own:
        calls = [(own.path, rank, 2, [0, 3, 254]) for rank in range(2)]
        outcomes = light_ranks.run(join_as_instance, calls, environment={"SHMEM_INSTANCE_PORT_RANGE": "1024:2047"})
        refused = ["NotImplementedError", "ValueError"]
        assert light_ranks.values(outcomes)[0] == [
            (0, "tcp://127.0.0.1:1024"), *refused,
            (3, "tcp://127.0.0.1:1027"), *refused,
            (254, "tcp://127.0.0.1:1278"), *refused,
        ]  # fmt: skip
