"""Kernel locks on bytes of a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from triton_dist.testing.leases.locks import is_locked, lock_bytes, unlock_bytes, unlocked_bytes

START, LENGTH = 1 << 32, 40


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "file"
    made.touch()
    return made


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(holders=st.lists(st.lists(st.tuples(st.integers(0, LENGTH - 1), st.integers(1, 9)), max_size=5), max_size=5))
def test_locks_of_any_holders_are_seen_and_exclude_each_other(file: Path, holders: list[list[tuple[int, int]]]) -> None:
    fds = [os.open(file, os.O_RDWR) for _ in holders]
    watcher = os.open(file, os.O_RDONLY)
    owner: dict[int, int] = {}
    try:
        for fd, ranges in zip(fds, holders, strict=True):
            for first, length in ranges:
                wanted = range(first, first + length)
                taken = any(owner.get(byte, fd) != fd for byte in wanted)
                assert lock_bytes(fd, START + first, length) is not taken
                if not taken:
                    owner.update(dict.fromkeys(wanted, fd))
        expected = {START + byte for byte in range(LENGTH) if byte not in owner}
        assert unlocked_bytes(watcher, START, LENGTH) == expected
        assert is_locked(watcher, START, LENGTH) is (len(expected) < LENGTH)
    finally:
        for fd in (*fds, watcher):
            os.close(fd)


def test_the_last_descriptor_of_an_open_file_keeps_its_locks(file: Path) -> None:
    holder, watcher = os.open(file, os.O_RDWR), os.open(file, os.O_RDONLY)
    assert lock_bytes(holder, 3)
    copy = os.dup(holder)
    os.close(holder)
    assert is_locked(watcher, 3)
    unlock_bytes(copy, 3)
    assert not is_locked(watcher, 3)
    assert lock_bytes(copy, 3)
    os.close(copy)
    assert not is_locked(watcher, 3)
    os.close(watcher)
