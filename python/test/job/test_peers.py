"""Ranks that go while others wait for them: told at once, by number, with how they ended. Nothing hangs."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import threading
import time
from typing import Any

import light_ranks
import pytest

from triton_dist.runtime import job, native, rendezvous, session

HEAP = 1 << 20
GE = 3
AT_ONCE = 8.0  # seconds, on a machine that is busy with other tests


def join(rank: int, world_size: int, endpoint: str) -> job.Job:
    return job.attach(rendezvous.Endpoint(endpoint), rank, world_size, HEAP, timeout=25.0)


def go(how: str) -> None:
    """Ends this process in one of the ways in which processes end."""
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exits at once":
        os._exit(0)
    if how == "raises":
        raise LookupError("no such row")
    assert how == "returns"


def error_of(call: Any, *arguments: Any) -> str:
    try:
        call(*arguments)
    except RuntimeError as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def barrier_without_rank_1(rank: int, world_size: int, endpoint: str, how: str) -> str:
    current = join(rank, world_size, endpoint)
    if rank == 1:
        time.sleep(0.3)
        go(how)
        return ""
    return error_of(current.barrier)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("killed", "has died without aclshmem_finalize, killed or crashed"),
        ("exits at once", "has died without aclshmem_finalize, killed or crashed"),
        ("raises", r"left without aclshmem_finalize \(LookupError: no such row\)"),
        ("returns", "left without aclshmem_finalize"),
    ],
)
def test_a_rank_that_goes_ends_the_barrier_of_all(how: str, told: str) -> None:
    outcomes = light_ranks.run(barrier_without_rank_1, 3, light_ranks.new_endpoint(), how)
    for rank in (0, 2):
        text = outcomes[rank].value
        assert text.startswith(f"PeerGoneError: rank {rank} waits in aclshmem_barrier_all, but rank ")
        assert re.search(rf"rank 1 \(process \d+\) {told}", text)
        assert outcomes[rank].seconds < AT_ONCE


def wait_for_a_word(rank: int, world_size: int, endpoint: str, waiting: tuple[int, ...], signals: bool) -> str:
    """Ranks not in `waiting` go at once; `signals`: the last one only after it has written the word."""
    current = join(rank, world_size, endpoint)
    word = current.alloc(64, clear=True)
    if rank in waiting:
        return error_of(current.wait_until, word, 4, GE, 7, "signal_wait")
    if rank == world_size - 1:
        time.sleep(1.0)
        for pe in waiting if signals else ():
            current.heap.signal(word, 4, 7, 0, pe, "signal")
    return ""


def test_a_wait_for_a_word_goes_on_while_somebody_is_left() -> None:
    outcomes = light_ranks.run(wait_for_a_word, 3, light_ranks.new_endpoint(), (0,), True)
    assert outcomes[0].value == "no error"
    assert outcomes[0].seconds >= 1.0


def test_a_wait_for_a_word_ends_when_all_others_have_gone() -> None:
    outcomes = light_ranks.run(wait_for_a_word, 3, light_ranks.new_endpoint(), (0,), False)
    text = outcomes[0].value
    assert text.startswith("PeerGoneError: rank 0 waits in signal_wait, but rank 1 (process ")
    assert "; rank 2 (process " in text
    assert 1.0 <= outcomes[0].seconds < AT_ONCE


def finalize_after_others(rank: int, world_size: int, endpoint: str) -> bool:
    current = join(rank, world_size, endpoint)
    if rank == 1:
        return True
    current.finalize()
    return job.current() is None


def test_finalize_goes_on_without_ranks_that_have_gone_and_says_so() -> None:
    outcomes = light_ranks.run(finalize_after_others, 2, light_ranks.new_endpoint())
    assert light_ranks.values(outcomes) == [True, True]
    (warning,) = outcomes[0].warnings
    assert "aclshmem_finalize did not wait for all ranks" in warning
    assert "rank 1 (process " in warning


def barrier_against_finalize(rank: int, world_size: int, endpoint: str) -> str:
    current = join(rank, world_size, endpoint)
    return error_of(current.finalize if rank == 1 else current.barrier)


def test_a_finalize_against_a_barrier_is_told_to_both() -> None:
    barrier, finalize = light_ranks.values(light_ranks.run(barrier_against_finalize, 2, light_ranks.new_endpoint()))
    assert "rank 0 is in aclshmem_barrier_all, rank 1 in aclshmem_finalize" in barrier
    assert "rank 1 is in aclshmem_finalize, rank 0 in aclshmem_barrier_all" in finalize


def barrier_after_finalize(rank: int, world_size: int, endpoint: str) -> str:
    current = join(rank, world_size, endpoint)
    current.team_barrier([0, 1])
    if rank == 1:
        current.abandon("somebody pulled the plug")
        time.sleep(4.0)  # lives on
        return ""
    return error_of(current.team_barrier, [0, 1])


def test_a_rank_that_gives_up_but_lives_is_told_to_the_others() -> None:
    outcomes = light_ranks.run(barrier_after_finalize, 2, light_ranks.new_endpoint())
    assert "left without aclshmem_finalize (somebody pulled the plug)" in outcomes[0].value
    assert outcomes[0].seconds < outcomes[1].seconds - 1.5


def watched_launch(rank: int, world_size: int, endpoint: str, for_a_barrier: bool) -> Any:
    """What the kernel launcher does: something waits in native code, and the peers are looked at now and then."""
    current = join(rank, world_size, endpoint)
    word = current.alloc(64, clear=True)
    if rank == 1:
        return None
    library = native.library()
    five_seconds = 5_000_000_000
    if for_a_barrier:
        ticket = library.barrier_arrive()
        wait = threading.Thread(target=library.barrier_wait, args=(ticket, five_seconds))
    else:
        wait = threading.Thread(target=library.wait_until, args=(word, 4, GE, 7, five_seconds))
    wait.start()
    begin = time.monotonic()
    text = "nothing was said"
    while wait.is_alive():
        try:
            current.check_peers()
        except job.PeerGoneError as error:
            text = str(error)
            break
        time.sleep(0.05)
    seconds = time.monotonic() - begin
    library.signal(word, 4, 7, 0, 0)
    wait.join()
    return text, seconds


@pytest.mark.parametrize("for_a_barrier", [True, False])
def test_a_launch_that_waits_for_a_rank_that_has_gone_is_ended(for_a_barrier: bool) -> None:
    outcomes = light_ranks.run(watched_launch, 2, light_ranks.new_endpoint(), for_a_barrier)
    (text, seconds), _ = light_ranks.values(outcomes)
    assert text.startswith("rank 0 waits in ")
    assert "of the host, but rank 1 (process " in text
    assert seconds < 4.0
    assert for_a_barrier or seconds >= 1.0  # programs of this rank may still signal each other


def interrupted_barrier(rank: int, world_size: int, endpoint: str) -> float:
    current = join(rank, world_size, endpoint)
    if rank == 1:
        time.sleep(4.0)
        return 0.0
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    try:
        current.barrier()
    except KeyboardInterrupt:
        return time.monotonic() - begin
    return 100.0


def test_ctrl_c_ends_a_barrier() -> None:
    outcomes = light_ranks.run(interrupted_barrier, 2, light_ranks.new_endpoint())
    assert outcomes[0].value < 2.5


def watch_a_wait(rank: int, world_size: int, endpoint: str) -> Any:
    current = join(rank, world_size, endpoint)
    word = current.alloc(128, clear=True) + 64
    current.barrier()
    if rank == 1:
        time.sleep(1.0)
        current.heap.signal(word, 4, 5, 0, 0, "signal")
        current.finalize()
        return None
    seen: list[Any] = []

    def look() -> None:
        until = time.monotonic() + 5
        while not seen and time.monotonic() < until:
            seen.extend(session.describe_waits())

    watcher = threading.Thread(target=look)
    before = session.describe_waits()
    watcher.start()
    current.wait_until(word, 4, GE, 5, "signal_wait")
    watcher.join()
    current.finalize()
    return before, seen, word


def test_another_thread_sees_what_a_rank_waits_for() -> None:
    (result, _) = light_ranks.values(light_ranks.run(watch_a_wait, 2, light_ranks.new_endpoint()))
    before, seen, word = result
    assert before == []
    assert (seen[0]["address"], seen[0]["wanted"], seen[0]["has"]) == (word, 5, 0)


def fork_a_child(rank: int, world_size: int, endpoint: str) -> list[Any]:
    """What a forked child sees of its parent's job, and whether it can be in one of its own."""
    current = join(rank, world_size, endpoint)
    word = current.alloc(64, clear=True)
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        texts = [error_of(job.require, "my_pe")]
        alone = job.attach(rendezvous.Endpoint(f"{endpoint} child of {rank}"), 0, 1, HEAP, timeout=10.0)
        address = alone.alloc(64, clear=True)
        ctypes.c_int32.from_address(address).value = 5
        alone.finalize()
        texts.append("fine")
        os.write(theirs, "\n".join(texts).encode())
        os._exit(0)
    os.waitpid(child, 0)
    text = os.read(ours, 10000).decode()
    current.barrier()
    value = ctypes.c_int32.from_address(word).value
    current.finalize()
    return [*text.split("\n"), value]


def test_a_fork_of_a_rank_is_not_that_rank() -> None:
    for first, second, value in light_ranks.values(light_ranks.run(fork_a_child, 2, light_ranks.new_endpoint())):
        assert "my_pe needs shmem to be initialised" in first
        assert second == "fine"
        assert value == 0
