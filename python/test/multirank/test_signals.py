"""Signals: many producers and one consumer, words of 32 and 64 bits, set and add, used again and again."""

# Arguments of kernels have no Python types, and torch gets its `npu` when it is imported.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
import triton
import triton.language as tl

import triton_dist.language as dl

from .symmetric import slot, symmetric_tensors

WORLD_SIZES = [2, 4, 8]
BLOCK = 64


@triton.jit
def produce(data, signals, rank, SLOT: tl.constexpr, N: tl.constexpr):
    lanes = tl.arange(0, N)
    row = dl.symm_at(data, 0) + rank * N
    tl.store(row + lanes, lanes * 3 + 1000 * rank)
    dl.notify(signals + (rank - 1) * SLOT, 0, signal=1, sig_op="set", comm_scope="intra_node")


@triton.jit
def consume(data, signals, out, world_size, N: tl.constexpr):
    token = dl.wait(signals, world_size - 1, scope="gpu", semantic="acquire", waitValue=1)
    ready = dl.consume_token(data, token)
    lanes = tl.arange(0, N)
    for source in range(1, world_size):
        tl.store(out + source * N + lanes, tl.load(ready + source * N + lanes))


def many_to_one(rank: int, world_size: int, word: torch.dtype) -> None:
    with symmetric_tensors(rank, world_size, (world_size * BLOCK, torch.int32), (world_size * slot(word), word)) as (
        data,
        signals,
    ):
        if rank == 0:
            out = torch.zeros(world_size * BLOCK, dtype=torch.int32).npu()
            consume[(1,)](data, signals, out, world_size, BLOCK)
            got = out.cpu().reshape(world_size, BLOCK)
            want = torch.arange(BLOCK)[None, :] * 3 + 1000 * torch.arange(world_size)[:, None]
            assert torch.equal(got[1:], want[1:].to(torch.int32))
            words = signals.cpu()[:: slot(word)]
            assert words.tolist() == [1] * (world_size - 1) + [0]
        else:
            produce[(1,)](data, signals, rank, slot(word), BLOCK)


@pytest.mark.dist
@pytest.mark.parametrize("world_size", WORLD_SIZES)
@pytest.mark.parametrize("word", [torch.int32, torch.int64, torch.uint32, torch.uint64], ids=str)
def test_many_to_one(dist_test, world_size: int, word: torch.dtype) -> None:
    dist_test(many_to_one, world_size=world_size, args=(word,))


@triton.jit
def add_to_counter(counter, amount):
    dl.notify(counter, 0, signal=amount, sig_op="add", comm_scope="intra_node")


@triton.jit
def wait_for_counter(counter, out, total):
    token = dl.wait(counter, 1, scope="sys", semantic="acquire", waitValue=total)
    tl.store(out, tl.load(dl.consume_token(counter, token)))


def add_from_all(rank: int, world_size: int, programs: int) -> None:
    with symmetric_tensors(rank, world_size, (16, torch.int32)) as (counter,):
        add_to_counter[(programs,)](counter, rank + 1)
        if rank == 0:
            out = torch.zeros(1, dtype=torch.int32).npu()
            total = programs * sum(range(1, world_size + 1))
            wait_for_counter[(1,)](counter, out, total)
            assert out.item() == total


@pytest.mark.dist
@pytest.mark.parametrize("world_size", WORLD_SIZES)
def test_adds_of_all_ranks_and_programs_are_counted(dist_test, world_size: int) -> None:
    dist_test(add_from_all, world_size=world_size, args=(50,))


@triton.jit
def next_round(data, signals, out, rank, world_size, round_number, SLOT: tl.constexpr):
    right = (rank + 1) % world_size
    left = (rank + world_size - 1) % world_size
    tl.store(dl.symm_at(data, right) + rank, round_number * 100 + rank)
    dl.notify(signals + rank * SLOT, right, signal=round_number)
    token = dl.wait(signals + left * SLOT, 1, scope="sys", semantic="acquire", waitValue=round_number)
    tl.store(out + round_number - 1, tl.load(dl.consume_token(data, token) + left))
    # The right neighbour has read: its acknowledgement lies in the second half of the slots.
    dl.notify(signals + (world_size + rank) * SLOT, left, signal=round_number)
    dl.wait(signals + (world_size + right) * SLOT, 1, "sys", "acquire", waitValue=round_number)


ROUNDS = 12


def rounds(rank: int, world_size: int, word: torch.dtype) -> None:
    with symmetric_tensors(rank, world_size, (world_size, torch.int32), (2 * world_size * slot(word), word)) as (
        data,
        signals,
    ):
        out = torch.zeros(ROUNDS, dtype=torch.int32).npu()
        for number in range(1, ROUNDS + 1):
            next_round[(1,)](data, signals, out, rank, world_size, number, slot(word))
        left = (rank - 1) % world_size
        assert out.tolist() == [number * 100 + left for number in range(1, ROUNDS + 1)]


@pytest.mark.dist
@pytest.mark.parametrize("world_size", WORLD_SIZES)
@pytest.mark.parametrize("word", [torch.int32, torch.int64], ids=str)
def test_signals_are_used_again_with_growing_values(dist_test, world_size: int, word: torch.dtype) -> None:
    dist_test(rounds, world_size=world_size, args=(word,))


@triton.jit
def pass_on(words, out, SLOT: tl.constexpr):
    # Later programs signal earlier ones, so all of a launch must be under way at once.
    program = tl.program_id(0)
    programs = tl.num_programs(0)
    if program < programs - 1:
        dl.wait(words + program * SLOT, 1, "gpu", "acquire", waitValue=program + 1)
    if program > 0:
        dl.notify(words + (program - 1) * SLOT, dl.rank(), signal=program, comm_scope="gpu")
    tl.store(out + program, program)


def chain_in_a_grid(rank: int, world_size: int, programs: int) -> None:
    with symmetric_tensors(rank, world_size, (programs * slot(torch.int64), torch.int64)) as (words,):
        out = torch.full((programs,), -1, dtype=torch.int32).npu()
        pass_on[(programs,)](words, out, slot(torch.int64))
        assert out.tolist() == list(range(programs))


@pytest.mark.dist
def test_programs_of_one_launch_wait_for_each_other(dist_test) -> None:
    dist_test(chain_in_a_grid, world_size=2, args=(20,))


@triton.jit
def keep_values(floats, halves, masks, words, out_floats, out_halves, out_masks, N: tl.constexpr):
    lanes = tl.arange(0, N)
    whole = tl.load(floats + lanes)
    half = tl.load(halves + lanes)
    mask = tl.load(masks + lanes) > 0
    token = dl.wait(words, 0, "gpu", "acquire")
    tl.store(out_floats + lanes, dl.consume_token(whole, token))
    tl.store(out_halves + lanes, dl.consume_token(half, token))
    tl.store(out_masks + lanes, dl.consume_token(mask, token).to(tl.int32))
    tl.store(out_masks + N, dl.consume_token(7, token) + dl.consume_token(tl.load(masks), token))


def token_on_values(rank: int, world_size: int) -> None:
    with symmetric_tensors(rank, world_size, (8, torch.int64)) as (words,):
        values = torch.tensor([0.0, -0.0, 1.5, -2.25, float("inf"), float("-inf"), float("nan"), 1e-40] * 2)
        masks = torch.tensor([1, 0, 1, 1, 0, 0, 1, 0] * 2, dtype=torch.int32)
        out_floats, out_halves = torch.empty(16).npu(), torch.empty(16, dtype=torch.float16).npu()
        out_masks = torch.zeros(17, dtype=torch.int32).npu()
        halves = values.to(torch.float16)
        keep_values[(1,)](values.npu(), halves.npu(), masks.npu(), words, out_floats, out_halves, out_masks, N=16)
        assert torch.equal(out_floats.cpu().view(torch.int32), values.view(torch.int32))
        assert torch.equal(out_halves.cpu().view(torch.int16), halves.view(torch.int16))
        assert out_masks.tolist() == [*masks.tolist(), 8]


@pytest.mark.dist
def test_consume_token_changes_no_bit_of_a_value(dist_test) -> None:
    dist_test(token_on_values, world_size=2)


@triton.jit
def who_am_i(out):
    tl.store(out, dl.rank())
    tl.store(out + 1, dl.num_ranks())


def identity(rank: int, world_size: int) -> None:
    with symmetric_tensors(rank, world_size):
        out = torch.zeros(2, dtype=torch.int32).npu()
        who_am_i[(1,)](out)
        assert out.tolist() == [rank, world_size] == [dist.get_rank(), dist.get_world_size()]


@pytest.mark.dist
@pytest.mark.parametrize("world_size", WORLD_SIZES)
def test_rank_and_num_ranks(dist_test, world_size: int) -> None:
    dist_test(identity, world_size=world_size)
