"""A job in which no rank can go on: every rank stops at once, with one table, the same on all of them."""

# Arguments of kernels have no Python types, and torch gets its `npu` when it is imported.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

import contextlib
import queue
import threading
import time

import pytest
import shmem as ash
import torch
import torch.distributed as dist
import triton
import triton.language as tl

import triton_dist
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem
from triton_dist.testing.report import RanksFailed

from .symmetric import slot, symmetric_tensors

SLOTS = 4
SLOT = slot(torch.int64)


@triton.jit
def consume(signals, count, out):
    dl.wait(signals, count, "sys", "acquire")
    tl.store(out, 1)


@triton.jit
def produce(signals, offset, value, pe):
    dl.notify(signals + offset, pe, signal=value)


@triton.jit
def produce_late(signals, last):
    if tl.program_id(0) == last:
        dl.notify(signals, dl.rank())
    else:
        dl.wait(signals, 1, "sys", "acquire")


@triton.jit
def exchange(signals, pe, SLOT: tl.constexpr):
    dl.wait(signals + SLOT, 1, "sys", "acquire")
    dl.notify(signals + SLOT, pe)


@triton.jit
def wait_until(signals, CMP: tl.constexpr, value):
    shmem.signal_wait_until(signals, CMP, value)


@triton.jit
def meet():
    shmem.barrier_all()


def stuck(rank: int, world_size: int, case: str, compare: int = 0) -> None:
    with symmetric_tensors(rank, world_size, (SLOTS * SLOT, torch.int64), (slot(torch.int32), torch.int32)) as (
        signals,
        words,
    ):
        out = torch.zeros(1, dtype=torch.int32).npu()
        with pytest.raises(triton_dist.DeadlockError) as caught:
            run(case, rank, signals, words, out, compare)
        texts: list[str | None] = [None] * world_size
        # Where all agree, the text is that of every rank.
        dist.all_gather_object(texts, str(caught.value), group=dist.new_group(backend="gloo"))
        assert texts == [texts[0]] * world_size
        raise RuntimeError(f"told: {caught.value}")


def run(case, rank, signals, words, out, compare) -> None:
    if case == "crossed order":
        exchange[(1,)](signals, 1 - rank, SLOT)
    elif case == "queued producer":
        produce_late[(41,)](signals, 40)
    elif case == "skipped barrier":
        if rank == 0:
            meet[(1,)]()
    elif case == "wait of a stream":
        stream = torch.npu.current_stream().npu_stream
        ash.aclshmemx_signal_wait_until_on_stream(words.data_ptr(), ash.CmpOp.CMP_EQ, 1, stream)
    elif case == "receive without a send":
        if rank == 0:
            dist.recv(signals, 1)
    elif case == "any word, of the host":
        first = torch.zeros(1, dtype=torch.int64)
        ash.aclshmem_int64_wait_until_any(signals.data_ptr(), 2, 0, ash.CmpOp.CMP_EQ, 1, first.data_ptr())
    elif case == "idle threads":
        threading.Thread(target=queue.SimpleQueue().get, daemon=True).start()
        exchange[(1,)](signals, 1 - rank, SLOT)
    elif case == "comparison":
        wait_until[(1,)](words, compare, {0: 1, 1: 0, 2: 0, 3: 1, 4: 0, 5: -1}[compare])
    elif rank == 0:
        consume[(1,)](signals, 2, out)
    elif case == "wrong slot":
        produce[(1,)](signals, 2 * SLOT, 1, 0)
    elif case == "8-byte stride":
        produce[(1,)](signals, 0, 1, 0)
        produce[(1,)](signals, 1, 1, 0)
    elif case == "wrong value":
        produce[(1,)](signals, 0, 2, 0)
    torch.npu.synchronize()
    dist.barrier()


def told(dist_test, *arguments: object) -> str:
    with pytest.raises(RanksFailed, match="told: no rank can go on") as caught:
        dist_test(stuck, world_size=2, args=arguments)
    return str(caught.value)


@pytest.mark.dist
@pytest.mark.parametrize(
    ("case", "row", "hint"),
    [
        ("wrong slot", "signals[0]  (+0 B of 256)", "wrote slot 2 of rank 0's, and slot 0 is waited for"),
        ("8-byte stride", "signals[1]  (+64 B of 256)", "reads every 64 bytes: a slot is 8 int64 elements, not 1"),
        ("wrong value", "rank 1 produce test_deadlocks.py:", "has set 2 there, and rank 0 waits for == 1"),
        ("queued producer", "(39,0,0)", "1 program of produce_late on rank 0 have not begun"),
        ("crossed order", "signals[1]  (+64 B of 256)", "crossed order"),
        ("wrong slot", "finished  produce", "ended 0."),
        ("wait of a stream", "wait_until on a stream", "crossed order"),
        ("receive without a send", "host", "is in a collective of hccl"),
        ("any word, of the host", " host ", "(2 ranks, "),
        ("idle threads", "signals[1]  (+64 B of 256)", "crossed order"),
        ("skipped barrier", "rank 1 to come to it", "rank 1 does not come to barrier_all: is in a collective of hccl"),
    ],
)
def test_a_deadlock_is_told_with_what_went_wrong(dist_test, case: str, row: str, hint: str) -> None:
    message = told(dist_test, case)
    assert row in message
    assert hint in message


@pytest.mark.dist
@pytest.mark.parametrize(("compare", "sign"), list(enumerate(["==", "!=", ">", ">=", "<", "<="])))
def test_every_comparison_is_told(dist_test, compare: int, sign: str) -> None:
    message = told(dist_test, "comparison", compare)
    assert "signal_wait_until" in message
    assert f"  {sign} " in message


class LeftError(Exception):
    """The rank has nothing more to do."""


def wait_for_the_other(rank: int, world_size: int) -> None:
    with symmetric_tensors(rank, world_size, (SLOTS * SLOT, torch.int64)) as (signals,):
        if rank == 1:
            raise LeftError
        consume[(1,)](signals, 1, torch.zeros(1, dtype=torch.int32).npu())
        torch.npu.synchronize()


def return_early(rank: int, world_size: int) -> None:
    with contextlib.suppress(LeftError):
        wait_for_the_other(rank, world_size)


@pytest.mark.dist
def test_a_rank_that_returned_early_is_named(dist_test) -> None:
    with pytest.raises(RanksFailed, match="DeadlockError: no rank can go on") as caught:
        dist_test(return_early, world_size=2)
    assert "rank 1 has left and gives no signal any more" in str(caught.value)


def sleeps(rank: int, world_size: int) -> None:
    with symmetric_tensors(rank, world_size, (SLOTS * SLOT, torch.int64)) as (signals,):
        out = torch.zeros(1, dtype=torch.int32).npu()
        if rank == 0:
            consume[(1,)](signals, 1, out)
            torch.npu.synchronize()
            assert out.item() == 1
        else:
            time.sleep(5)
            produce[(1,)](signals, 0, 1, 0)
        dist.barrier()


def message_and_signal(rank: int, world_size: int) -> None:
    with symmetric_tensors(rank, world_size, (SLOTS * SLOT, torch.int64)) as (signals,):
        if rank == 0:
            dist.recv(signals, 1)
            produce[(1,)](signals, 0, 1, 1)
        else:
            time.sleep(0.3)
            dist.send(signals + 1, 0)
            consume[(1,)](signals, 1, torch.zeros(1, dtype=torch.int32).npu())
        torch.npu.synchronize()
        if rank == 0:
            assert signals.tolist() == [1] * (SLOTS * SLOT)


@pytest.mark.dist
def test_who_waits_for_a_message_is_not_stuck_while_it_may_come(dist_test) -> None:
    dist_test(message_and_signal, world_size=2)


@pytest.mark.dist
def test_a_rank_that_sleeps_before_its_notify_is_waited_for(dist_test) -> None:
    dist_test(sleeps, world_size=2)
