"""The fixture `dist_test`: one call runs a worker function on so many ranks."""

from __future__ import annotations

import os
import random
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from triton_dist import env
from triton_dist.testing import artifacts, options, terminal, time_limits
from triton_dist.testing.hardware_report import hardware_texts
from triton_dist.testing.leases.endpoint import new_session
from triton_dist.testing.leases.errors import LeaseError
from triton_dist.testing.leases.pool import Lease
from triton_dist.testing.nodes.hosts import Host
from triton_dist.testing.nodes.job import NodesJob, Wishes
from triton_dist.testing.nodes.namespaces import NamespaceError, namespaces
from triton_dist.testing.nodes.remote import NodeError
from triton_dist.testing.options import MarkerArguments, checked_count
from triton_dist.testing.ranks import coverage_data, modules, rewriting
from triton_dist.testing.ranks.client import ZygoteError
from triton_dist.testing.ranks.job import MOST_RANKS, Job
from triton_dist.testing.ranks.record import JobRecord
from triton_dist.testing.ranks.task import Task, TaskError, lasting_key, module_names, pickled_call
from triton_dist.testing.report import RanksFailed, judge, sections, what_to_debug
from triton_dist.testing.usage import record_use

if TYPE_CHECKING:
    from triton_dist.testing.session import DistSession


class DistTest:
    """Runs worker functions for one test."""

    def __init__(self, item: pytest.Item, session: DistSession) -> None:
        self._item = item
        self._session = session

    def __call__(
        self,
        fn: Callable[..., object],
        world_size: int | None = None,
        backend: str = "hccl",
        args: Sequence[object] = (),
        nodes: int | None = None,
    ) -> None:
        """Calls `fn(rank, world_size, *args)` in `world_size` processes at once, each on an NPU of its own.

        Each process has an initialised default group of torch.distributed and has called
        `torch.npu.set_device(rank)`, or its number on its node where there are several. The call waits for its NPUs,
        then for the ranks.

        Args:
            fn: a function at the top of a module.
            world_size: the number of ranks; by default that of the test's marker `dist`, else 2.
            backend: of torch.distributed.
            args: further arguments, sent by pickle.
            nodes: on how many hosts, each with as many ranks; by default as the test's marker `dist` says, else 1.

        Raises:
            RanksFailed: a rank failed; its traceback is in the message.
            RanksTimedOut: ranks were still running when their time was over.
            pytest.skip.Exception, pytest.xfail.Exception: if the ranks raised it.
        """
        __tracebackhide__ = True
        try:
            marker = MarkerArguments.of(self._item)
            count = marker.world_size if world_size is None else checked_count("world_size", world_size)
            on = marker.nodes if nodes is None else checked_count("nodes", nodes)
            self._run(fn, count, on, backend, tuple(args), marker)
        except (LeaseError, NodeError, TaskError, ValueError, ZygoteError) as error:
            raise pytest.fail.Exception(f"dist_test: {error}", pytrace=False) from None

    def _run(
        self,
        fn: Callable[..., object],
        world_size: int,
        nodes: int,
        backend: str,
        args: tuple[object, ...],
        marker: MarkerArguments,
    ) -> None:
        __tracebackhide__ = True
        if world_size % nodes:
            raise ValueError(f"{world_size} ranks on {nodes} nodes: each node has as many, so nodes divides world_size")
        if world_size // nodes > MOST_RANKS:
            raise ValueError(f"world_size is {world_size}: one host can run up to {MOST_RANKS} ranks of a test")
        call = pickled_call(fn, args)
        with time_limits.suspended(self._item):
            if nodes == 1:
                self._run_on_lease(fn, call, world_size, backend, marker)
            else:
                self._run_on_nodes(fn, call, world_size, nodes, backend, marker)

    def _run_on_lease(
        self, fn: Callable[..., object], call: bytes, world_size: int, backend: str, marker: MarkerArguments
    ) -> None:
        __tracebackhide__ = True
        zygote = self._session.ready_zygote()
        warm = self._session.warm_ranks and not marker.fresh
        key = lasting_key(env.child_environ(**_defaults())) if warm else ""
        lease = self._session.lease(zygote, world_size, key, self._item.name)
        try:
            environ = rank_environ(world_size, lease, self._session.pool.inventory.environ(lease.npus))
            task = self._task(fn, call, world_size, backend, environ)
            captured = self._item.config.getoption("capture") != "no"
            job = Job(
                zygote,
                lease,
                task,
                captured=captured,
                warm=warm,
                bound=self._session.binds_ranks,
                terminal=terminal.of(self._item.config),
                native_stacks=self._keeps_artifacts,
            )
            try:
                job.run(
                    time_limits.limited(self._item, marker.timeout, chosen=marker.chose_timeout),
                    self._session.check_parent,
                )
            finally:
                if (reason := job.record.why_npus_are_suspect()) is not None:
                    lease.suspect(reason)
                reused = sum(record.reused for record in job.record.ranks)
                record_use(self._item, lease.npus, lease.since, reused=reused, seed=task.seed)
                self._show_output(job.record)
        finally:
            lease.release()
        self._judge(job.record, [rank.pid for rank in job.record.ranks if rank.pid is not None])

    def _run_on_nodes(
        self, fn: Callable[..., object], call: bytes, world_size: int, nodes: int, backend: str, marker: MarkerArguments
    ) -> None:
        __tracebackhide__ = True
        config = self._item.config
        task = replace(self._task(fn, call, world_size, backend, {}), terminal=False, debugged=None)
        with _nodes(config, nodes) as hosts:
            if options.hosts(config):
                # Their data files would be written on other hosts, where nobody combines them.
                task = replace(task, coverage=None)
            wishes = Wishes(
                config.getoption("--npus"),
                config.getoption("--allow-busy-npus"),
                getattr(config, "workerinput", {}).get("workerid", ""),
                self._item.name,
            )
            job = NodesJob(hosts, task, wishes, new_session(), native_stacks=self._keeps_artifacts)
            try:
                job.run(
                    time_limits.limited(self._item, marker.timeout, chosen=marker.chose_timeout),
                    self._session.check_parent,
                )
            finally:
                if job.npus:
                    record_use(self._item, job.npus, job.since, seed=task.seed)
                self._show_output(job.record)
                if config.getoption("capture") == "no":
                    for record in job.record.ranks:
                        sys.stdout.write(record.stdout)
                        sys.stderr.write(record.stderr)
        self._judge(job.record, [])

    @property
    def _keeps_artifacts(self) -> bool:
        return self._item.config.getoption("--dist-artifacts") is not None

    def _show_output(self, record: JobRecord) -> None:
        for name, text in sections(record):
            self._item.add_report_section("call", name, text)

    def _judge(self, record: JobRecord, pids: Sequence[int]) -> None:
        """Does what the ranks did, after all that is known of a failure has been kept; `pids`: those on this host."""
        __tracebackhide__ = True
        try:
            judge(record)
        except RanksFailed as error:
            self._keep_artifacts(error, pids)
            rank = terminal.debugged_rank(self._item.config)
            if rank is not None and (advice := what_to_debug(error, rank)):
                error.msg = f"{error.msg}\n{advice}"
            raise

    def _keep_artifacts(self, error: RanksFailed, pids: Sequence[int]) -> None:
        directory: str | None = self._item.config.getoption("--dist-artifacts")
        if directory is None:
            return
        # After a time-out it has been asked for already, while the ranks were there.
        more = error.record.hardware or hardware_texts(pids)
        path = self._item.config.invocation_params.dir / directory
        try:
            folder = artifacts.write(path, self._item.nodeid, str(error), error.record, more)
        except OSError as reason:
            self._item.add_report_section("call", "artifacts", f"not written: {reason}")
            return
        self._item.user_properties.append(("artifacts", str(folder)))
        self._item.add_report_section("call", "artifacts", str(folder))

    def _task(
        self, fn: Callable[..., object], call: bytes, world_size: int, backend: str, environ: dict[str, str]
    ) -> Task:
        names = module_names(fn) | modules.conftests(self._item.config, self._item.path)
        return Task(
            world_size=world_size,
            backend=backend,
            environ=environ,
            directory=os.getcwd(),
            sys_path=list(sys.path),
            argv=list(sys.argv),
            modules=modules.sources(names),
            assertions=rewriting.settings_of(self._item.config),
            traceback_style=_traceback_style(self._item.config),
            call=call,
            seed=_seed(self._item.nodeid),
            coverage=coverage_data.settings_of(self._item.config),
            terminal=terminal.has_one(self._item.config),
            debugged=terminal.debugged_rank(self._item.config),
        )


def rank_environ(world_size: int, lease: Lease, npus: dict[str, str]) -> dict[str, str]:
    """The environment of the ranks on a lease, apart from their numbers."""
    return env.child_environ(
        **_defaults(),
        **npus,
        WORLD_SIZE=world_size,
        LOCAL_WORLD_SIZE=world_size,
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=lease.port,
        **lease.environ(),
    )


def _defaults() -> dict[str, object]:
    """Variables that ranks have on every lease, where the user has not set them."""
    defaults: dict[str, object] = {}
    if not env.OMP_NUM_THREADS.is_set():
        defaults["OMP_NUM_THREADS"] = 1
    if not env.GLOO_SOCKET_IFNAME.is_set():
        # gloo would ask for the address of the host's name, which in a container often has none.
        defaults["GLOO_SOCKET_IFNAME"] = "lo"
    return defaults


@contextmanager
def _nodes(config: pytest.Config, count: int) -> Iterator[list[Host]]:
    """So many hosts: the user's, or network namespaces of this machine, without which the test is skipped.

    Raises:
        ValueError: the user has named fewer.
    """
    named = options.hosts(config)
    if named:
        if count > len(named):
            raise ValueError(f"nodes={count}: --dist-hosts={config.getoption('--dist-hosts')} names {len(named)}")
        yield named[:count]
        return
    with ExitStack() as stack:
        try:
            made = stack.enter_context(namespaces(count))
        except NamespaceError as error:
            pytest.skip(f"no --dist-hosts, and no network namespaces on this machine for {count} nodes: {error}")
        yield made


def _seed(nodeid: str) -> int:
    """A seed for the ranks' random numbers: the same again where something such as pytest-randomly seeds this process.

    The test's own sequence of random numbers stays as it is.
    """
    generator = random.Random()
    generator.setstate(random.getstate())
    return zlib.crc32(f"{generator.getrandbits(32)} {nodeid}".encode())


def _traceback_style(config: pytest.Config) -> str:
    """pytest's --tb for a rank: by default short entries, since several ranks may have one."""
    style: str = config.getoption("tbstyle", "auto")
    return "short" if style == "auto" else style
