"""The network namespaces that other tests use."""

from __future__ import annotations

import socket
import subprocess
import threading

import network


def listen_at(path: str, address: tuple[str, int], family: int, errors: list[OSError | None]) -> None:
    network.enter(path)
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        try:
            listener.bind(address)
        except OSError as error:
            errors.append(error)
        else:
            errors.append(None)


def test_a_namespace_owns_its_addresses_and_goes_with_its_test() -> None:
    addresses = [("192.168.1.100", socket.AF_INET), ("fd00::100", socket.AF_INET6), ("192.168.1.101", socket.AF_INET)]
    with network.Network.make({"eth0": ["192.168.1.100/24", "fd00::100/64"]}) as own:
        errors: list[OSError | None] = []
        for address, family in addresses:
            # A thread of its own: the others stay where they are.
            thread = threading.Thread(target=listen_at, args=(own.path, (address, 1234), family, errors), daemon=True)
            thread.start()
            thread.join(20)
        assert errors[:2] == [None, None]
        assert isinstance(errors[2], OSError)
        shown = subprocess.run(own.command("ip", "address"), check=True, timeout=30, capture_output=True, text=True)
        assert "192.168.1.100/24" in shown.stdout
    gone = subprocess.run(own.command("ip", "address"), timeout=30, capture_output=True, text=True)
    assert gone.returncode != 0
