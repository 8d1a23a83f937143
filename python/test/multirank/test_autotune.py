"""Autotuning a kernel that reaches other ranks: all ranks take one configuration, or all say why they cannot."""

# Arguments of kernels have no Python types, and torch gets its `npu` when it is imported.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import shmem as ash
import torch
import torch.distributed as dist
import triton
import triton.language as tl
from triton.compiler.errors import MLIRCompilationError

import triton_dist.language as dl
from triton_dist import env
from triton_dist.compiler.autotune import kernels
from triton_dist.runtime import job

from .symmetric import slot, symmetric_tensors

WORD = torch.int32
Config = triton.Config


@triton.jit
def exchange(signals, out, n, WIDTH: tl.constexpr):
    """Every rank sends WIDTH to every other rank, and adds up what the others have sent."""
    me = dl.rank()
    ranks = dl.num_ranks()
    for i in range(1, ranks):
        dl.notify(signals + 16 * me, (me + i) % ranks, signal=WIDTH, sig_op="set", comm_scope="intra_node")
    for i in range(1, ranks):
        dl.wait(signals + 16 * ((me + i) % ranks), 1, scope="gpu", semantic="acquire", waitValue=WIDTH)
    tl.store(out, tl.load(out) + WIDTH)


@triton.jit
def double(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) * 2)


@triton.jit
def helper(signals):
    dl.notify(signals, 0)


@triton.jit
def through_a_helper(signals):
    helper(signals)


@triton.jit
def knows_its_rank(out):
    tl.store(out, dl.rank() + dl.num_ranks())


def test_which_kernels_are_tuned_together() -> None:
    assert kernels.reaches_others(exchange)
    assert kernels.reaches_others(through_a_helper)
    assert not kernels.reaches_others(double)
    assert not kernels.reaches_others(knows_its_rank)


def scripted(times: dict[int, float]) -> Callable[..., list[float]]:
    """A benchmark that runs the kernel twice and says what `times` has for the WIDTH it ran with."""

    def bench(run: Any, quantiles: Sequence[float]) -> list[float]:
        run()
        run()
        width = run.__self__._config.kwargs["WIDTH"]
        return [times[width]] * len(quantiles)

    return bench


def tuned(widths: Sequence[int], **options: Any) -> Any:
    return triton.autotune(
        [Config({"WIDTH": width}) for width in widths], key=["n"], reset_to_zero=["signals", "out"], **options
    )(exchange)


def chosen_everywhere(kernel: Any, world_size: int) -> list[int]:
    """The WIDTH that each rank has chosen."""
    choices: list[Any] = [None] * world_size
    dist.all_gather_object(choices, kernel.best_config.kwargs["WIDTH"])
    return choices


def workspace(world_size: int) -> tuple[tuple[int, torch.dtype], tuple[int, torch.dtype]]:
    return (world_size * slot(WORD), WORD), (1, WORD)


def worker_measures(rank: int, world_size: int) -> None:
    with symmetric_tensors(rank, world_size, *workspace(world_size)) as (signals, out):
        kernel = tuned([1, 2, 3])
        for n in (10, 10, 20):
            kernel[(1,)](signals, out, n)
            torch.npu.synchronize()
            assert len(set(chosen_everywhere(kernel, world_size))) == 1
        # The second launch with n = 10 is the only one that did not begin with a reset.
        assert out.item() == kernel.best_config.kwargs["WIDTH"]
        assert all(0 < time < 1e5 for timing in kernel.configs_timings.values() for time in timing)


@pytest.mark.dist
@pytest.mark.parametrize("world_size", [2, 4])
def test_all_ranks_choose_the_same(dist_test: Callable[..., None], world_size: int) -> None:
    dist_test(worker_measures, world_size=world_size)


def worker_measures_differently(rank: int, world_size: int) -> None:
    # Alone, rank 0 would choose 1, and rank 1 would choose 2. On the slowest rank, 3 is the fastest.
    times = ({1: 1.0, 2: 9.0, 3: 4.0}, {1: 9.0, 2: 1.0, 3: 5.0})[rank]
    with symmetric_tensors(rank, world_size, *workspace(world_size)) as (signals, out):
        kernel = tuned([1, 2, 3], do_bench=scripted(times))
        kernel[(1,)](signals, out, 10)
        assert chosen_everywhere(kernel, world_size) == [3, 3]
        assert {c.kwargs["WIDTH"]: t[0] for c, t in kernel.configs_timings.items()} == {1: 9.0, 2: 9.0, 3: 5.0}


@pytest.mark.dist
def test_ranks_that_measure_differently_choose_the_same(dist_test: Callable[..., None]) -> None:
    dist_test(worker_measures_differently, world_size=2)


def failing_for(widths: Sequence[int], error: Exception, when_compiling: bool) -> Any:
    """`exchange`, which fails on this rank with some configurations."""
    kernel = triton.jit(exchange.fn)
    run = kernel.run

    def failing_run(*args: Any, **kwargs: Any) -> Any:
        if kwargs["WIDTH"] in widths and kwargs["warmup"] is when_compiling:
            raise error
        return run(*args, **kwargs)

    kernel.run = failing_run
    return kernel


def worker_cannot_compile(rank: int, world_size: int) -> None:
    error = MLIRCompilationError("ConvertLinalgRToBinary", "ub overflow")
    kernel = failing_for([1] if rank == 1 else [], error, when_compiling=True)
    with symmetric_tensors(rank, world_size, *workspace(world_size)) as (signals, out):
        times = {1: 1.0, 2: 2.0, 3: 3.0}
        configs = [Config({"WIDTH": width}) for width in times]
        kernel = triton.autotune(configs, key=["n"], reset_to_zero=["signals", "out"], do_bench=scripted(times))(kernel)
        kernel[(1,)](signals, out, 10)
        torch.npu.synchronize()
        assert chosen_everywhere(kernel, world_size) == [2] * world_size
        assert out.item() == 2


@pytest.mark.dist
def test_a_configuration_that_does_not_compile_on_one_rank_is_dropped_on_all(dist_test: Callable[..., None]) -> None:
    dist_test(worker_cannot_compile, world_size=3)


@triton.jit
def check_here(signals, out, me, WIDTH: tl.constexpr):
    """Fails on rank 1 with WIDTH 1, and signals to rank 0 otherwise."""
    tl.device_assert(me + WIDTH != 2, "not on rank 1 with 1")
    dl.notify(signals, 0)
    tl.store(out, WIDTH)


def worker_cannot_run(rank: int, world_size: int, dump: str) -> None:
    env.apply({"TRITON_DUMP_DIR": dump})  # what is compiled with debug is dumped
    with symmetric_tensors(rank, world_size, *workspace(world_size)) as (signals, out):
        configs = [Config({"WIDTH": width, "debug": True}) for width in (1, 3)]
        kernel = triton.autotune(configs, key=[])(check_here)
        kernel[(1,)](signals, out, rank)
        torch.npu.synchronize()
        assert chosen_everywhere(kernel, world_size) == [3] * world_size


@pytest.mark.dist
def test_a_configuration_that_fails_on_one_rank_is_dropped_on_all(
    dist_test: Callable[..., None], tmp_path: Path
) -> None:
    dist_test(worker_cannot_run, world_size=2, args=(str(tmp_path),))


@triton.jit
def check_and_exchange(signals, out, me, WIDTH: tl.constexpr):
    """Fails on rank 1 with WIDTH 1, before it signals to rank 0, which waits for that."""
    tl.device_assert(me + WIDTH != 2, "not on rank 1 with 1")
    dl.notify(signals + 16 * me, 1 - me)
    dl.wait(signals + 16 * (1 - me), 1, scope="gpu", semantic="acquire")
    tl.store(out, WIDTH)


def worker_waits_for_what_failed(rank: int, world_size: int, dump: str) -> None:
    env.apply({"TRITON_DUMP_DIR": dump})
    with symmetric_tensors(rank, world_size, *workspace(world_size)) as (signals, out):
        configs = [Config({"WIDTH": width, "debug": True}) for width in (1, 3)]
        kernel = triton.autotune(configs, key=[], reset_to_zero=["signals"])(check_and_exchange)
        kernel[(1,)](signals, out, rank)
        torch.npu.synchronize()
        assert out.item() == 3


@pytest.mark.dist
def test_a_rank_does_not_wait_for_what_a_failed_one_would_have_written(
    dist_test: Callable[..., None], tmp_path: Path
) -> None:
    dist_test(worker_waits_for_what_failed, world_size=2, args=(str(tmp_path),))


def worker_nothing_is_left(rank: int, world_size: int) -> None:
    error = MLIRCompilationError("ConvertLinalgRToBinary", "ub overflow")
    kernel = failing_for([1] if rank == 1 else [2], error, when_compiling=True)
    kernel = triton.autotune([Config({"WIDTH": width}) for width in (1, 2)], key=[])(kernel)
    with symmetric_tensors(rank, world_size, *workspace(world_size)) as (signals, out):
        tune = kernel[(1,)]
        with pytest.raises(RuntimeError, match="autotuning exchange: no configuration compiles and runs on all ranks"):
            tune(signals, out, 10)


@pytest.mark.dist
def test_no_configuration_is_left(dist_test: Callable[..., None]) -> None:
    dist_test(worker_nothing_is_left, world_size=2)


def worker_other_hook(rank: int, world_size: int) -> None:
    def hook(named: dict[str, Any], reset_only: bool = False) -> None:
        if rank == 1:
            raise ZeroDivisionError("of the user")

    kernel = triton.autotune([Config({"WIDTH": width}) for width in (1, 2)], key=[], pre_hook=hook)(exchange)
    with symmetric_tensors(rank, world_size, *workspace(world_size)) as (signals, out):
        expected = ZeroDivisionError if rank == 1 else RuntimeError
        text = "of the user" if rank == 1 else "autotuning exchange: it failed on rank 1, which says why"
        with pytest.raises(expected, match=text):
            kernel[(1,)](signals, out, 10)


@pytest.mark.dist
def test_an_error_on_one_rank_ends_the_tuning_on_all(dist_test: Callable[..., None]) -> None:
    dist_test(worker_other_hook, world_size=3)


def worker_other_key(rank: int, world_size: int) -> None:
    with symmetric_tensors(rank, world_size, *workspace(world_size)) as (signals, out):
        tune = tuned([1, 2])[(1,)]
        with pytest.raises(RuntimeError, match=rf"autotuning exchange: rank {1 - rank} tunes .*with another key.*n="):
            tune(signals, out, 10 + rank)


@pytest.mark.dist
def test_ranks_with_different_keys(dist_test: Callable[..., None]) -> None:
    dist_test(worker_other_key, world_size=2)


def worker_other_count(rank: int, world_size: int) -> None:
    def bench(run: Callable[[], None], quantiles: Sequence[float]) -> list[float]:
        for _ in range(1 + rank):
            run()
        return [1.0] * len(quantiles)

    with symmetric_tensors(rank, world_size, *workspace(world_size)) as (signals, out):
        tune = tuned([1, 2], do_bench=bench)[(1,)]
        with pytest.raises(RuntimeError, match="another number of runs"):
            tune(signals, out, 10)


@pytest.mark.dist
def test_a_benchmark_that_runs_the_kernel_a_different_number_of_times(dist_test: Callable[..., None]) -> None:
    dist_test(worker_other_count, world_size=2)


def worker_elsewhere(rank: int, world_size: int) -> None:
    with symmetric_tensors(rank, world_size, *workspace(world_size)) as (signals, out):
        call = ash.aclshmem_barrier_all if rank == 0 else lambda: tuned([1, 2])[(1,)](signals, out, 10)
        with pytest.raises(RuntimeError, match=r"different collective calls.*triton\.autotune"):
            call()


@pytest.mark.dist
def test_a_rank_that_makes_another_collective_call(dist_test: Callable[..., None]) -> None:
    dist_test(worker_elsewhere, world_size=2)


def worker_does_not_come(rank: int, world_size: int) -> None:
    env.apply({"TRITON_DIST_AUTOTUNE_TIMEOUT": "0.3"})
    try:
        with symmetric_tensors(rank, world_size, *workspace(world_size)) as (signals, out):
            if rank == 0:
                with pytest.raises(
                    RuntimeError, match=r"autotuning exchange: .*ranks \[1\] have not come within 0.3 s"
                ):
                    tuned([1, 2])[(1,)](signals, out, 10)
            dist.barrier()
            if rank != 0:  # brings the two back in step
                current = job.current()
                assert current is not None
                current.gather("triton.autotune", (0, 0, 0), 10)
    finally:
        env.apply({"TRITON_DIST_AUTOTUNE_TIMEOUT": None})


@pytest.mark.dist
def test_a_rank_that_does_not_come(dist_test: Callable[..., None]) -> None:
    dist_test(worker_does_not_come, world_size=2)


def worker_tunes_alone(rank: int, world_size: int) -> None:
    with symmetric_tensors(rank, world_size, (64, WORD), (64, WORD)) as (x, out):
        if rank == 1:
            x.fill_(3)
            kernel = triton.autotune([Config({"BLOCK": block}) for block in (32, 64)], key=[])(double)
            kernel.do_bench = lambda run, quantiles: (run(), [1.0] * 3)[1]
            kernel[(1,)](x, out)
            torch.npu.synchronize()
            assert out[:32].cpu().tolist() == [6] * 32


@pytest.mark.dist
def test_a_local_kernel_is_tuned_by_one_rank_alone(dist_test: Callable[..., None]) -> None:
    dist_test(worker_tunes_alone, world_size=2)


def worker_prints(rank: int, world_size: int) -> None:
    env.apply({"TRITON_PRINT_AUTOTUNING": "1"})
    try:
        printed = io.StringIO()
        with symmetric_tensors(rank, world_size, *workspace(world_size)) as (signals, out):
            tune = tuned([1, 2])[(1,)]
            with contextlib.redirect_stdout(printed):
                tune(signals, out, 10)
        assert printed.getvalue().count("best config selected: WIDTH: ") == (1 if rank == 0 else 0)
        assert env.TRITON_PRINT_AUTOTUNING.get()
    finally:
        env.apply({"TRITON_PRINT_AUTOTUNING": None})


@pytest.mark.dist
def test_the_choice_is_printed_once(dist_test: Callable[..., None]) -> None:
    dist_test(worker_prints, world_size=2)
