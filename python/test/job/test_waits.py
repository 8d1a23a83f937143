"""Waits for words of the own heap, and tests of them, for each type and comparison."""

from __future__ import annotations

import ctypes
import operator
import time
from typing import Any

import host_api
import light_ranks
import pytest

from triton_dist.shims import shmem as ash

SIZE_MAX = 2**64 - 1
COMPARISONS = {0: operator.eq, 1: operator.ne, 2: operator.gt, 3: operator.ge, 4: operator.lt, 5: operator.le}
# Values on both sides of where a wrong reading of the bits would change the order.
VALUES: dict[str, tuple[Any, list[float]]] = {
    "int8": (ctypes.c_int8, [-128, -1, 0, 127]),
    "int16": (ctypes.c_int16, [-32768, -1, 0, 32767]),
    "int32": (ctypes.c_int32, [-(2**31), -1, 0, 2**31 - 1]),
    "int64": (ctypes.c_int64, [-(2**63), -1, 0, 2**63 - 1]),
    "uint8": (ctypes.c_uint8, [0, 127, 128, 255]),
    "uint16": (ctypes.c_uint16, [0, 32767, 32768, 65535]),
    "uint32": (ctypes.c_uint32, [0, 2**31 - 1, 2**31, 2**32 - 1]),
    "uint64": (ctypes.c_uint64, [0, 2**63 - 1, 2**63, 2**64 - 1]),
    "float": (ctypes.c_float, [-2.5, -1.0, 0.5, 2.0]),
    "char": (ctypes.c_int8, [-128, -1, 0, 127]),
}


def session() -> dict[str, str]:
    """An environment in which any ip_port leads to a job of this test only."""
    return {"TRITON_DIST_SESSION": light_ranks.new_endpoint()}


def compare_everything(rank: int, world_size: int) -> None:
    host_api.init(rank, world_size, port=8666)
    words = ash.aclshmem_calloc(4, 8)
    yes, count = ctypes.c_int32(-1), ctypes.c_uint64(77)
    indices = (ctypes.c_uint64 * 4)()
    at = ctypes.addressof
    for name, (kind, values) in VALUES.items():
        array = (kind * 4).from_address(words)
        array[:] = values
        mask = (ctypes.c_int32 * 4)(0, 0, 1, 0)
        every, pair = (getattr(ash, f"aclshmem_{name}_{word}") for word in ("test_all_vector", "test_some_vector"))
        for number, holds in COMPARISONS.items():
            for value in values:
                case = (name, number, value)
                fit = [index for index in range(4) if holds(values[index], value)]
                for index in range(4):
                    address = words + index * ctypes.sizeof(kind)
                    getattr(ash, f"aclshmem_{name}_test")(address, number, value, at(yes))
                    assert yes.value == (index in fit), case
                    if index in fit:  # it would hang otherwise
                        getattr(ash, f"aclshmem_{name}_wait_until")(address, number, value)
                masked = [index for index in fit if index != 2]
                for status, expected in ((0, fit), (at(mask), masked)):
                    getattr(ash, f"aclshmem_{name}_test_any")(words, 4, status, number, value, at(count))
                    assert count.value == (expected[0] if expected else SIZE_MAX), case
                    getattr(ash, f"aclshmem_{name}_test_some")(words, 4, at(indices), status, number, value, at(count))
                    assert indices[: count.value] == expected, case
                    if expected:
                        arguments = (words, 4, status, number, value)
                        getattr(ash, f"aclshmem_{name}_wait_until_any")(*arguments, at(count))
                        assert count.value == expected[0], case
                    if len(expected) == (3 if status else 4):
                        getattr(ash, f"aclshmem_{name}_wait_until_all")(words, 4, status, number, value)
        wanted = (kind * 4)(*values)
        every(words, 4, 0, ash.CmpOp.CMP_EQ, at(wanted), at(yes))
        assert yes.value == 1, name
        wanted[1] = values[2]
        every(words, 4, 0, ash.CmpOp.CMP_EQ, at(wanted), at(yes))
        assert yes.value == 0, name
        pair(words, 4, at(indices), at(mask), ash.CmpOp.CMP_EQ, at(wanted), at(count))
        assert indices[: count.value] == [0, 3], name
    # Nothing to wait for: no wait, and no index.
    nothing = (ctypes.c_int32 * 4)(1, 1, 1, 1)
    ash.aclshmem_int32_wait_until_any(words, 4, at(nothing), 0, 99, at(count))
    assert count.value == SIZE_MAX
    ash.aclshmem_int32_wait_until_some(words, 4, at(indices), at(nothing), 0, 99, at(count))
    assert count.value == 0
    ash.aclshmem_int32_wait_until_all(words, 4, at(nothing), 0, 99)
    assert "cmp is 6: it must be one of CMP_EQ (0)" in host_api.error(ash.aclshmem_int32_wait_until, words, 6, 0)
    assert "are not in the symmetric heap" in host_api.error(ash.aclshmem_int32_wait_until, at(yes), 0, 0)
    assert "must be a multiple of 8 bytes" in host_api.error(ash.aclshmem_int64_wait_until, words + 4, 0, 0)
    ash.aclshmem_finalize()


def test_all_types_and_comparisons_on_words_that_are_there() -> None:
    light_ranks.values(light_ranks.run(compare_everything, 1, environment=session()))


def wait_for_the_other(rank: int, world_size: int) -> None:
    """Rank 1 writes, one after the other and late, what rank 0 waits for."""
    host_api.init(rank, world_size, port=8666)
    words = ash.aclshmem_calloc(8, 8)
    count = ctypes.c_uint64(77)
    indices = (ctypes.c_uint64 * 4)()
    at = ctypes.addressof
    steps: list[tuple[Any, Any]] = [
        (
            lambda: ash.aclshmem_uint32_p(words, 2**32 - 1, 0),
            lambda: ash.aclshmem_uint32_wait_until(words, ash.CmpOp.CMP_GT, 2**31),
        ),
        (
            lambda: ash.aclshmem_float_p(words + 8, -0.5, 0),
            lambda: ash.aclshmem_float_wait_until(words + 8, ash.CmpOp.CMP_LT, 0.0),
        ),
        (lambda: ash.aclshmem_int64_p(words + 16, 7, 0), lambda: ash.aclshmem_int64_wait(words + 16, 0)),
        (
            lambda: [ash.aclshmem_int16_p(words + 24 + 2 * i, i + 1, 0) for i in (2, 0, 1, 3)],
            lambda: ash.aclshmem_int16_wait_until_all(words + 24, 4, 0, ash.CmpOp.CMP_GT, 0),
        ),
        (
            lambda: ash.aclshmem_int32_p(words + 32 + 8, 5, 0),
            lambda: ash.aclshmem_int32_wait_until_any(words + 32, 4, 0, ash.CmpOp.CMP_EQ, 5, at(count)),
        ),
        (
            lambda: ash.aclshmem_int32_p(words + 48 + 4, 6, 0),
            lambda: ash.aclshmem_int32_wait_until_some(words + 48, 4, at(indices), 0, 0, 6, at(count)),
        ),
    ]
    for number, (write, wait) in enumerate(steps):
        ash.aclshmem_barrier_all()
        begin = time.monotonic()
        if rank == 1:
            time.sleep(0.2)
            write()
        else:
            wait()
            assert time.monotonic() - begin >= 0.1, number
            if number == 4:
                assert count.value == 2
            if number == 5:
                assert indices[: count.value] == [1]
    ash.aclshmem_finalize()


def test_waits_end_when_another_rank_writes() -> None:
    light_ranks.values(light_ranks.run(wait_for_the_other, 2, environment=session()))


def wait_alone(rank: int, world_size: int, wait: str) -> str:
    host_api.init(rank, world_size, port=8666)
    words = ash.aclshmem_calloc(8, 8)
    if rank == 1:
        return ""
    return host_api.error(lambda: eval(wait, {"ash": ash, "words": words}))


@pytest.mark.parametrize(
    "wait",
    [
        "ash.aclshmem_signal_wait_until(words, 0, 1)",
        "ash.aclshmem_float_wait_until(words, 0, 1.0)",
        "ash.aclshmem_int32_wait_until_all(words, 4, 0, 0, 1)",
    ],
)
def test_a_wait_that_nobody_can_end_is_an_error(wait: str) -> None:
    text, _ = light_ranks.values(light_ranks.run(wait_alone, 2, wait, environment=session()))
    assert text.startswith("PeerGoneError: rank 0 waits in aclshmem_")
    assert "rank 1 (process " in text
