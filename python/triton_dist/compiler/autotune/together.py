"""One configuration, compiled and run by all ranks at once.

A benchmark of Triton's chooses its repetitions by the clock, so the ranks would launch a kernel that waits for its
peers different numbers of times, and hang. Here all ranks take the same steps, and say after each how it went:

1. compile: a configuration that does not compile on one rank is dropped on all.
2. For each run: the hooks, when the last run has ended on all ranks (they reset what peers have written, such as
   signals); the launch, when the hooks have ended on all; and how long it took. A run takes as long as on the slowest
   rank. A configuration that fails on one rank is dropped on all.

So all ranks know the same times, and Triton's own choice among them is the same on all.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import hashlib
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from triton.compiler.errors import CompileTimeAssertionFailure, MLIRCompilationError
from triton.runtime import autotuner
from triton.runtime.driver import driver
from triton.runtime.errors import OutOfResources

from triton_dist import env
from triton_dist.compiler.autotune import kernels
from triton_dist.compiler.errors import KernelCompileError
from triton_dist.runtime import job as jobs
from triton_dist.runtime import launches, native

WARM_UPS = 1
RUNS = 5

_NAME = "triton.autotune"
_CANNOT_COMPILE = (OutOfResources, CompileTimeAssertionFailure, MLIRCompilationError, KernelCompileError)
_DROPPED = [math.inf] * 3
_FOREVER_NS = 2.0**62

Bench = Callable[..., list[float]]


class _State(enum.IntEnum):
    """How a step went on a rank."""

    DONE = 0
    FAILED = 1
    """The configuration is of no use."""
    BROKEN = 2
    """An error that has nothing to do with the configuration: it ends the tuning on all ranks."""


class _DroppedError(Exception):
    """The configuration has failed on some rank."""


class _PeerFailedError(Exception):
    """The launch of another rank has failed, while this rank's was still running."""


_CANNOT_RUN = (native.NativeError, _PeerFailedError)


def install() -> None:
    """Put the measurements of all ranks in the place of Triton's, where a kernel of a job reaches other ranks."""
    tuner = autotuner.Autotuner
    tuner._bench = _benching_together(tuner._bench)
    tuner.prune_configs = _counting(tuner.prune_configs)
    tuner.run = _printing_again(tuner.run)


def _is_together(tuner: Any) -> bool:
    job = jobs.current()
    return job is not None and job.world_size > 1 and kernels.reaches_others(kernels.base(tuner.fn))


def _counting(prune: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """Notes how many configurations are measured next, to say when none of them is left."""

    @functools.wraps(prune)
    def counted(self: Any, kwargs: dict[str, Any]) -> list[Any]:
        configs = prune(self, kwargs)
        self._triton_dist_candidates = len(configs)
        return configs

    return counted


def _benching_together(bench: Bench) -> Bench:
    @functools.wraps(bench)
    def bench_together(self: Any, *args: Any, config: Any, **meta: Any) -> list[float]:
        if not _is_together(self):
            return bench(self, *args, config=config, **meta)
        job = jobs.current()
        assert job is not None
        if job.rank != 0:
            # Triton prints the choice behind the last measurement: rank 0 does it for all.
            env.apply({env.TRITON_PRINT_AUTOTUNING.name: None})
        if not hasattr(self.pre_hook, "meets"):
            self.pre_hook = _meeting_after_reset(self, self.pre_hook)
        timings = _Measurement(self, job, config, args, meta).timings()
        if timings == _DROPPED:
            self._triton_dist_candidates -= 1
            if self._triton_dist_candidates == 0:
                name = kernels.base(self.fn).__name__
                raise RuntimeError(f"autotuning {name}: no configuration compiles and runs on all ranks")
        return timings

    return bench_together


def _printing_again(run: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(run)
    def printing_again(self: Any, *args: Any, **kwargs: Any) -> Any:
        variable = env.TRITON_PRINT_AUTOTUNING
        wanted = variable.text()
        try:
            return run(self, *args, **kwargs)
        finally:
            if wanted and not variable.is_set():
                env.apply({variable.name: wanted})

    return printing_again


def _meeting_after_reset(tuner: Any, hook: Callable[..., None]) -> Callable[..., None]:
    """The hook, and a meeting behind the reset that follows the last measurement.

    The launch that the user asked for comes next: what it writes to a peer must not be reset there.
    """

    @functools.wraps(hook)
    def meeting(named: dict[str, Any], **reset_only: bool) -> None:
        hook(named, **reset_only)
        if reset_only.get("reset_only") and _is_together(tuner):
            job = jobs.current()
            assert job is not None
            _synchronize()
            job.gather(_NAME, (0, _State.DONE, 0), env.TRITON_DIST_AUTOTUNE_TIMEOUT.get())

    meeting.meets = True  # type: ignore[attr-defined]
    return meeting


class _Measurement:
    """What one configuration takes, on all ranks of a job."""

    def __init__(self, tuner: Any, job: jobs.Job, config: Any, args: Sequence[Any], meta: dict[str, Any]) -> None:
        conflicts = meta.keys() & config.kwargs.keys()
        if conflicts:
            raise ValueError(
                f"{', '.join(sorted(conflicts))} of {kernels.base(tuner.fn).__name__} is given at the launch and in a "
                "triton.Config: leave it to one of them"
            )
        self._tuner = tuner
        self._job = job
        self._config = config
        self._args = args
        self._meta = {**meta, **config.all_kwargs()}
        self._named = {**tuner.nargs, **self._meta}
        self._name = kernels.base(tuner.fn).__name__
        self._key = _key(tuner, self._named)
        self._step = 0
        self._times: list[float] = []

    def timings(self) -> list[float]:
        """Median, 20 % and 80 % quantile of the runs on the slowest rank, in milliseconds; infinite if dropped."""
        try:
            self._attempt(self._compile, _CANNOT_COMPILE)
            custom = self._own_benchmark()
            if custom is None:
                return self._measure()
            return self._slowest(custom(self._run, quantiles=(0.5, 0.2, 0.8)))
        except _DroppedError:
            return _DROPPED

    def _compile(self) -> None:
        self._tuner.fn.run(*self._args, **{**self._meta, "warmup": True})

    def _measure(self) -> list[float]:
        for _ in range(WARM_UPS + RUNS):
            self._run()
        times = sorted(self._times[WARM_UPS:])
        return [times[round(quantile * (RUNS - 1))] for quantile in (0.5, 0.2, 0.8)]

    def _own_benchmark(self) -> Bench | None:
        """The benchmark that the user gave, which must run the kernel equally often on all ranks."""
        tuner = self._tuner
        by_the_clock = tuner.num_warmups is not None or tuner.num_reps is not None or tuner.use_cuda_graph
        if by_the_clock or tuner.do_bench == driver.active.get_benchmarker():
            return None
        bench: Bench = tuner.do_bench
        return bench

    def _run(self) -> None:
        """One run on all ranks, between its hooks."""
        tuner = self._tuner
        self._agree("begin", _State.DONE)
        self._attempt(self._prepare, ())
        failure: Exception | None = None
        try:
            self._times.append(self._attempt(self._launch, _CANNOT_RUN) / 1e6)
        except Exception as error:
            failure = error
            raise
        finally:
            tuner.post_hook(self._named, exception=failure)

    def _prepare(self) -> None:
        if self._config.pre_hook:
            self._config.pre_hook(self._named)
        self._tuner.pre_hook(self._named)
        _synchronize()

    def _launch(self) -> None:
        self._tuner.fn.run(*self._args, **self._meta)
        launches.watch(self._look_at_peers)
        try:
            launches.synchronize()
        except _PeerFailedError:
            launches.give_up()
            raise
        finally:
            launches.watch(self._job.check_peers)

    def _look_at_peers(self, may_be_stuck: bool) -> None:
        """Raises _PeerFailedError if the launch of another rank has failed: this one's may wait for it for ever."""
        self._job.check_peers(may_be_stuck)
        for call in self._job.posted_ahead():
            if call is not None and call.name == _NAME and call.align != _State.DONE:
                raise _PeerFailedError

    def _attempt(self, work: Callable[[], None], droppable: tuple[type[Exception], ...]) -> int:
        """Do `work`, and hear how it went elsewhere; the nanoseconds that it took the slowest rank.

        Raises:
            _DroppedError: it has failed on a rank in a way that says that the configuration is of no use.
            Exception: whatever else it raised here.
            RuntimeError: it raised something else on another rank.
        """
        step = work.__name__.strip("_")
        state = _State.DONE
        begin = time.perf_counter_ns()
        try:
            work()
        except droppable:
            state = _State.FAILED
        except Exception:
            with contextlib.suppress(_DroppedError, RuntimeError):
                self._agree(step, _State.BROKEN)
            raise
        return max(self._agree(step, state, time.perf_counter_ns() - begin))

    def _slowest(self, timings: Sequence[float]) -> list[float]:
        """The largest of each of the `timings` among the ranks, in milliseconds."""
        nanoseconds = [int(min(timing * 1e6, _FOREVER_NS)) for timing in timings]
        return [max(self._agree("compare", _State.DONE, each)) / 1e6 for each in nanoseconds]

    def _agree(self, step: str, state: _State, value: int = 0) -> list[int]:
        """All ranks have come to this step; the value of each.

        Raises:
            _DroppedError: the configuration has failed on a rank.
            RuntimeError: a rank is elsewhere, has met another error, or does not come.
        """
        self._step += 1
        where = f"{self._name} {self._key} {self._config} {step} {self._step}"
        digest = int.from_bytes(hashlib.sha256(where.encode()).digest()[:7], "little")
        timeout = env.TRITON_DIST_AUTOTUNE_TIMEOUT.get()
        try:
            answers = self._job.gather(_NAME, (digest, state, value), timeout)
        except TimeoutError as error:
            raise RuntimeError(
                f"autotuning {self._name}: {error}. It reaches other ranks, so all ranks must launch it, with the same "
                f"key (here {self._key}); TRITON_DIST_AUTOTUNE_TIMEOUT gives them longer"
            ) from None
        for rank, (theirs, _, _) in enumerate(answers):
            if theirs != digest:
                raise RuntimeError(
                    f"autotuning {self._name}: rank {rank} tunes another kernel, or with another key, other "
                    f"configurations or another number of runs than rank {self._job.rank}, which has key {self._key} "
                    f"and is at step {step!r} of ({self._config}). It reaches other ranks, so all must do the same"
                )
        states = [theirs for _, theirs, _ in answers]
        broken = [rank for rank, theirs in enumerate(states) if theirs == _State.BROKEN and rank != self._job.rank]
        if broken:
            raise RuntimeError(f"autotuning {self._name}: it failed on rank {broken[0]}, which says why")
        if _State.FAILED in states:
            raise _DroppedError
        return [theirs for _, _, theirs in answers]


def _key(tuner: Any, named: dict[str, Any]) -> tuple[str, ...]:
    """The values of the tuner's key and the types of the arguments, by which Triton tells launches apart."""
    names = tuner.keys.values() if isinstance(tuner.keys, dict) else tuner.keys
    values = [f"{name}={named[name]!r}" for name in names if name in named]
    types = [str(named[name].dtype) for name in tuner.arg_names if hasattr(named.get(name), "dtype")]
    return (*values, *types)


def _synchronize() -> None:
    driver.active.get_device_interface().synchronize()
