"""Launches beside the host: streams of a rank that wait for each other and other ranks, and what the host waits for."""

# Arguments of kernels have no Python types, and torch gets its `npu` when it is imported.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

import time

import pytest
import shmem as ash
import torch
import torch.distributed as dist
import triton
import triton.language as tl

import triton_dist.language as dl

from .symmetric import SLOT_BYTES, slot, symmetric_tensors

SLOT = slot(torch.int32)
TILE = 32
K = 64
TILES = 3  # of rows, that each rank sends


@triton.jit
def send_tiles(rows, signals, local, world_size, TILES: tl.constexpr, TILE: tl.constexpr, K: tl.constexpr):
    """Program t sends tile t of this rank's rows to every rank, and signals it there."""
    rank = dl.rank()
    t = tl.program_id(0)
    i = (t * TILE + tl.arange(0, TILE))[:, None] * K + tl.arange(0, K)[None, :]
    tile = tl.load(local + i)
    for step in range(1, world_size + 1):
        peer = (rank + step) % world_size
        tl.store(dl.symm_at(rows, peer) + rank * (TILES * TILE * K) + i, tile)
        dl.notify(signals + (rank * TILES + t) * 16, peer, signal=1, sig_op="set", comm_scope="intra_node")


@triton.jit
def gemm_when_there(rows, signals, weights, out, TILE: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    """Program t multiplies tile t of all rows, once it is there: float16 in, float32 accumulated."""
    t = tl.program_id(0)
    token = dl.wait(signals + t * 16, 1, scope="gpu", semantic="acquire", waitValue=1)
    ready = dl.consume_token(rows, token)
    m, n = t * TILE + tl.arange(0, TILE), tl.arange(0, N)
    result = tl.zeros((TILE, N), tl.float32)
    for k0 in range(0, K, 32):
        k = k0 + tl.arange(0, 32)
        left = tl.load(ready + m[:, None] * K + k[None, :])
        result += tl.dot(left, tl.load(weights + k[:, None] * N + n[None, :]))
    tl.store(out + m[:, None] * N + n[None, :], result)


def overlap(rank: int, world_size: int, gemm_first: bool) -> None:
    count = world_size * TILES
    with symmetric_tensors(rank, world_size, (count * TILE * K, torch.float16), (count * SLOT, torch.int32)) as (
        rows,
        signals,
    ):
        torch.manual_seed(7)
        everything = torch.randn(count * TILE, K).half()
        weights = torch.randn(K, TILE).half()
        local = everything[rank * TILES * TILE : (rank + 1) * TILES * TILE].npu()
        out = torch.zeros(count * TILE, TILE).npu()
        on_npu = weights.npu()
        communication, compute = torch.npu.Stream(), torch.npu.Stream()

        def communicate() -> None:
            with torch.npu.stream(communication):
                send_tiles[TILES,](rows, signals, local, world_size, TILES, TILE, K)

        if not gemm_first:
            communicate()
        with torch.npu.stream(compute):
            gemm_when_there[count,](rows, signals, on_npu, out, TILE, K, TILE)
        if gemm_first:
            communicate()
        torch.npu.current_stream().wait_stream(compute)
        torch.testing.assert_close(out.cpu(), everything.float() @ weights.float(), rtol=1e-3, atol=1e-3)
        torch.npu.synchronize()


@pytest.mark.dist
@pytest.mark.parametrize("gemm_first", [False, True])
@pytest.mark.parametrize("world_size", [2, 4])
def test_a_gemm_beside_the_communication_that_it_waits_for(dist_test, world_size, gemm_first):
    dist_test(overlap, world_size=world_size, args=(gemm_first,))


@triton.jit
def wait_for_peer(signals, out):
    token = dl.wait(signals, 1, scope="gpu", semantic="acquire", waitValue=1)
    tl.store(out, tl.load(dl.consume_token(signals, token)))


@triton.jit
def notify_peer(signals, peer):
    dl.notify(signals, peer, signal=1, sig_op="set", comm_scope="intra_node")


def host_goes_on(rank: int, world_size: int, collective: str) -> None:
    with symmetric_tensors(rank, world_size, (SLOT, torch.int32)) as (signals,):
        out = torch.zeros(1, dtype=torch.int32).npu()
        other = torch.ones(4).npu()
        done = torch.npu.Event()
        if rank == 0:
            wait_for_peer[1,](signals, out)
            done.record()
            assert not done.query()
            assert (other + 1).sum().item() == 8  # memory that no launch was given
        # The others come here before they notify.
        if collective == "gloo":
            total = torch.ones(1)
            dist.all_reduce(total, group=dist.new_group(backend="gloo"))
            assert total.item() == world_size
        elif collective == "hccl":
            dist.all_reduce(other)
            assert other.tolist() == [world_size] * 4
        elif collective == "barrier":
            dist.barrier()
        else:
            ash.aclshmem_barrier_all()
        if rank == 1:
            notify_peer[1,](signals, 0)
        if rank == 0:
            assert out.item() == 1
            assert done.query()


@pytest.mark.dist
@pytest.mark.parametrize("collective", ["gloo", "hccl", "barrier", "shmem barrier"])
def test_the_host_goes_on_beside_a_launch_that_waits(dist_test, collective):
    dist_test(host_goes_on, world_size=2, args=(collective,))


@triton.jit
def fill_peer(data, value, N: tl.constexpr):
    peer = (dl.rank() + 1) % dl.num_ranks()
    tl.store(dl.symm_at(data, peer) + tl.arange(0, N), tl.zeros((N,), tl.int32) + value)


def barrier_is_behind_launches(rank: int, world_size: int, barrier: str) -> None:
    with symmetric_tensors(rank, world_size, (1024, torch.int32)) as (data,):
        for value in range(1, 20):
            fill_peer[1,](data, value, 1024)
            dist.barrier() if barrier == "hccl" else ash.aclshmem_barrier_all()
            assert (data.cpu() == value).all()
            dist.barrier()


@pytest.mark.dist
@pytest.mark.parametrize("barrier", ["hccl", "shmem"])
def test_what_was_launched_before_a_barrier_is_done_behind_it(dist_test, barrier):
    dist_test(barrier_is_behind_launches, world_size=2, args=(barrier,))


@triton.jit
def answer(signals, me, rounds):
    """Two of these, on two streams of one rank, hand a number to each other."""
    for turn in range(1, rounds + 1):
        if me == 1:
            dl.wait(signals + 16, 1, scope="gpu", semantic="acquire", waitValue=turn)
            dl.notify(signals, dl.rank(), signal=turn, sig_op="set", comm_scope="intra_node")
        else:
            dl.notify(signals + 16, dl.rank(), signal=turn, sig_op="set", comm_scope="intra_node")
            dl.wait(signals, 1, scope="gpu", semantic="acquire", waitValue=turn)


def streams_signal_each_other(rank: int, world_size: int) -> None:
    with symmetric_tensors(rank, world_size, (2 * SLOT, torch.int32)) as (signals,):
        for me in (0, 1):
            with torch.npu.stream(torch.npu.Stream()):
                answer[1,](signals, me, 50)
        torch.npu.synchronize()
        assert signals[0].item() == signals[SLOT].item() == 50


@pytest.mark.dist
def test_two_streams_of_a_rank_signal_each_other(dist_test):
    dist_test(streams_signal_each_other, world_size=2)


@triton.jit
def spin_on_load(flag, out):
    spins = 0
    while tl.load(flag, volatile=True) == 0:
        spins += 1  # triton-ascend removes a loop of which nothing is left
    tl.store(out + tl.program_id(0), tl.minimum(spins, 0) + 1)


@triton.jit
def spin_on_swap(flag, out):
    while tl.atomic_cas(flag, 1, 1) == 0:
        pass
    tl.store(out + tl.program_id(0), 1)


@triton.jit
def set_flag(flag):
    tl.store(flag, 1)


def spinning(rank: int, world_size: int, kernel: str) -> None:
    flag = torch.zeros(1, dtype=torch.int32).npu()
    out = torch.zeros(30, dtype=torch.int32).npu()
    with torch.npu.stream(torch.npu.Stream()):
        globals()[kernel][30,](flag, out)
    set_flag[1,](flag)
    torch.npu.synchronize()
    assert out.tolist() == [1] * 30


@pytest.mark.dist
@pytest.mark.parametrize("kernel", ["spin_on_load", "spin_on_swap"])
def test_programs_that_spin_let_others_run(dist_test, kernel):
    dist_test(spinning, world_size=2, args=(kernel,))


def spinning_after_a_job(rank: int, world_size: int) -> None:
    streams_signal_each_other(rank, world_size)
    time.sleep(0.1)  # the engine has nothing to do, and what it slept at goes with the job
    flag = torch.zeros(1, dtype=torch.int32).npu()
    out = torch.zeros(30, dtype=torch.int32).npu()
    with torch.npu.stream(torch.npu.Stream()):
        spin_on_load[30,](flag, out)
    time.sleep(0.5)  # long enough to go to sleep between its turns
    set_flag[1,](flag)
    torch.npu.synchronize()
    assert out.tolist() == [1] * 30


@pytest.mark.dist
def test_launches_go_on_when_the_job_is_over(dist_test):
    dist_test(spinning_after_a_job, world_size=2)


@triton.jit
def last_releases_all(signals, counts):
    """More programs than cores: those of the first wave end, the last one is in the second wave."""
    t = tl.program_id(0)
    tl.atomic_add(counts, 1)
    if t == tl.num_programs(0) - 1:
        dl.notify(signals, dl.rank(), signal=1, sig_op="set", comm_scope="intra_node")


def more_programs_than_cores(rank: int, world_size: int) -> None:
    with symmetric_tensors(rank, world_size, (SLOT, torch.int32)) as (signals,):
        counts = torch.zeros(1, dtype=torch.int32).npu()
        out = torch.zeros(1, dtype=torch.int32).npu()
        with torch.npu.stream(torch.npu.Stream()):
            wait_for_peer[1,](signals, out)
        last_releases_all[1000,](signals, counts)
        torch.npu.synchronize()
        assert counts.item() == 1000
        assert out.item() == 1


@pytest.mark.dist
def test_more_programs_than_cores(dist_test):
    dist_test(more_programs_than_cores, world_size=2)


def calls_on_streams(rank: int, world_size: int) -> None:
    peer = (rank + 1) % world_size
    sizes = ((64, torch.int32), (64, torch.int32), (SLOT, torch.int32), (SLOT, torch.int32))
    with symmetric_tensors(rank, world_size, *sizes) as (data, back, signal, gate):
        stream = torch.npu.Stream()
        number = stream.npu_stream
        mine = torch.full((64,), rank + 1, dtype=torch.int32).npu()
        out = torch.zeros(1, dtype=torch.int32).npu()
        with torch.npu.stream(stream):
            wait_for_peer[1,](gate, out)
        ash.aclshmemx_putmem_on_stream(data.data_ptr(), mine.data_ptr(), 256, peer, number)
        ash.aclshmemx_quiet_on_stream(number)
        ash.aclshmemx_signal_op_on_stream(signal.data_ptr(), 5, ash.SignalOp.SIGNAL_SET, peer, number)
        ash.aclshmemx_signal_wait_until_on_stream(signal.data_ptr(), ash.CmpOp.CMP_EQ, 5, number)
        ash.aclshmemx_barrier_all_on_stream(number)
        ash.aclshmemx_getmem_on_stream(back.data_ptr(), data.data_ptr(), 256, peer, number)
        assert not stream.query()
        assert data.cpu().sum() == 0, "nothing has been copied while the stream waits"
        dist.barrier()
        notify_peer[1,](gate, rank)
        stream.synchronize()
        before = (rank - 1) % world_size
        assert data.tolist() == [before + 1] * 64
        assert back.tolist() == [rank + 1] * 64
        dist.barrier()


@pytest.mark.dist
@pytest.mark.parametrize("world_size", [2, 4])
def test_calls_of_the_host_in_stream_order(dist_test, world_size):
    dist_test(calls_on_streams, world_size=world_size)


def test_slots_are_what_the_kernels_say() -> None:
    assert SLOT == 16 == SLOT_BYTES // 4
