"""The process group of the backend `hccl` on simulated NPUs: gloo over the memory of tensors on npu."""

from __future__ import annotations

import concurrent.futures
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import default_pg_timeout
from torch.futures import Future

from triton_dist import env
from triton_dist.runtime import launches
from triton_dist.runtime.native import HostState
from triton_dist.runtime.other_threads import OWN_PREFIX
from triton_dist.runtime.shared_calls import Calls, have_begun

# How long a collective is waited for before a look at the other ranks.
_LOOK_SECONDS = 0.05

# Collectives that cannot be done anywhere while a rank has not come; on the other ranks, while the root has not; on the
# root, while any other rank has not.
_OF_ALL = frozenset(
    {
        "allreduce",
        "allgather",
        "allgather_coalesced",
        "_allgather_base",
        "reduce_scatter",
        "_reduce_scatter_base",
        "alltoall_base",
        "barrier",
    }
)
_FROM_ROOT = frozenset({"broadcast", "scatter"})
_TO_ROOT = frozenset({"reduce", "gather"})
_OTHER = {"send": "recv", "recv": "send"}


class HcclWork(dist.Work):
    """One or more collectives under way.

    Gloo holds the host aliases of the tensors until it is done; callers get back the tensors that they gave.

    Args:
        works: gloo's, in the order in which they were started.
        outputs: the tensors that they write.
        finish: called once, when all are done: what must happen before the tensors may be read.
        may_be_stuck: whether a rank that it cannot be done without has not begun its part.
        gives_up: a wait for them may end with an error of its own that the caller counts on.
    """

    def __init__(
        self,
        works: Sequence[dist.Work],
        outputs: list[torch.Tensor],
        finish: Callable[[], None] | None = None,
        may_be_stuck: Callable[[], bool] = lambda: False,
        gives_up: bool = False,
    ) -> None:
        super().__init__()
        self._works = works
        self._outputs = outputs
        self._finish = finish
        self.may_be_stuck = may_be_stuck
        self.gives_up = gives_up

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Blocks until the collectives are done; an error of theirs comes out here."""
        # A wait that ends by itself is none in which a rank is stuck for ever.
        state = HostState.RUNS if timeout or self.gives_up else HostState.IN_HCCL
        with launches.host_state(state):
            results = [work.wait(timeout) if timeout else self._wait_and_look(work) for work in self._works]
        self._call_finish()
        return all(results)

    def _wait_and_look(self, work: dist.Work) -> bool:
        """Waits, and looks now and then whether the other ranks can still come to it."""
        done = threading.Event()
        try:
            future = work.get_future()
        except RuntimeError:  # gloo's send and recv have none, and can only be waited for
            return self._look_beside(work)
        future.add_done_callback(lambda _: done.set())
        while not done.wait(_LOOK_SECONDS):
            launches.look(self.may_be_stuck())
        return work.wait()

    def _look_beside(self, work: dist.Work) -> bool:
        done: concurrent.futures.Future[bool] = concurrent.futures.Future()

        def wait() -> None:
            try:
                done.set_result(work.wait())
            except BaseException as error:
                done.set_exception(error)

        # Whoever gives up the wait leaves it behind: it ends with the group's time-out, or with the process.
        threading.Thread(target=wait, name=f"{OWN_PREFIX}hccl", daemon=True).start()
        while not concurrent.futures.wait([done], _LOOK_SECONDS).done:
            launches.look(self.may_be_stuck())
        return done.result()

    def _call_finish(self) -> None:
        finish, self._finish = self._finish, None
        if finish is not None:
            finish()

    def synchronize(self) -> None:
        """The same as wait."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether every collective is done, or has failed."""
        return all(work.is_completed() for work in self._works)

    def is_success(self) -> bool:
        """Whether every collective is done and has not failed."""
        return all(work.is_success() for work in self._works)

    def exception(self) -> Any:
        """The error of a collective that has failed, or None."""
        return next((work.exception() for work in self._works if work.is_completed() and not work.is_success()), None)

    def source_rank(self) -> int:
        """The rank that a receive from any source has got its tensor from."""
        return self._works[0]._source_rank()

    _source_rank = source_rank

    def result(self) -> list[torch.Tensor]:
        """The tensors that the collectives write."""
        return self._outputs

    def get_future(self) -> Future[list[torch.Tensor]]:
        """A future of the tensors that the collectives write."""

        def value(done: Future[Any]) -> list[torch.Tensor]:
            done.value()  # raises the error of a collective that has failed
            # Not wait(): gloo calls this before it counts the collective as done.
            self._call_finish()
            return self._outputs

        return torch.futures.collect_all([work.get_future() for work in self._works]).then(value)


def _interfaces() -> list[dict[str, str]]:
    """How gloo is told which interfaces to use: the loopback, unless GLOO_SOCKET_IFNAME names others."""
    names = env.GLOO_SOCKET_IFNAME.get()
    if names is None:
        # By address: a container's host name need not resolve to anything.
        return [{"hostname": "127.0.0.1"}]
    return [{"interface": name.strip()} for name in names.split(",")]


def _join(works: Sequence[HcclWork]) -> HcclWork:
    """Several collectives under way, waited for as one."""
    outputs = [tensor for work in works for tensor in work.result()]
    return HcclWork(
        works, outputs, None, lambda: any(work.may_be_stuck() for work in works), any(work.gives_up for work in works)
    )


class SimulatedHcclGroup(dist.ProcessGroup):
    """Collectives on tensors of simulated NPUs; what each takes and gives is said at the end of this file.

    Args:
        store: where the ranks of the group meet.
        rank: this process in the group.
        size: how many processes the group has.
        timeout: how long a collective may wait for the others.
    """

    def __init__(self, store: dist.Store, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)  # type: ignore[call-arg] # torch's stub has one of two forms only
        gloo: Any = dist.ProcessGroupGloo
        options = gloo._Options()
        options._timeout = timeout
        # With less time than the default, somebody may count on the error that says it is over.
        self._gives_up = timeout < default_pg_timeout
        options._devices = [gloo.create_device(**where) for where in _interfaces()]
        self._gloo = gloo(store, rank, size, options)
        self._coalesced: list[HcclWork] | None = None
        # Not through the store, which may still have what another group of the same name has left there.
        shared = torch.tensor([secrets.randbits(62)])
        self._gloo.broadcast([shared], dist.BroadcastOptions()).wait()
        self._id = f"hccl {int(shared):x}"
        self._calls = Calls(self._name_of_calls(rank))
        self._calls_between: dict[str, Calls] = {}
        # torch keeps a group's name, and asks what a group can do, in the backends registered with it.
        for device in ("npu", "cpu"):
            self._register_backend(torch.device(device), dist.ProcessGroup.BackendType.CUSTOM, self._gloo)

    def getBackendName(self) -> str:
        return "hccl"

    @property
    def _device_types(self) -> list[torch.device]:
        # torch lets a group like this one take the place of those that it has made for other devices, as for
        # "cpu:gloo,npu:hccl": their collectives come here too.
        devices = dist.get_backend_config(self).split(",")
        return [torch.device(device.partition(":")[0]) for device in devices]

    def _host(self, argument: Any) -> Any:
        """`argument` with every tensor on npu, also in nested lists, replaced by its host alias."""
        if isinstance(argument, (list, tuple)):
            return [self._host(item) for item in argument]
        if not isinstance(argument, torch.Tensor):
            return argument
        if argument.device.type == "npu":
            return torch.ops.triton_dist_npu.host_alias(argument.detach())
        if argument.device not in self._device_types:
            raise RuntimeError(
                f"No backend type associated with device type {argument.device.type}: this group has "
                f"{dist.get_backend_config(self)}"
            )
        return argument

    def _run(self, collective: str, *arguments: Any, **options: Any) -> HcclWork:
        """Runs a collective of gloo; the tensors that it writes are those of the first argument."""
        hosts = [self._host(argument) for argument in arguments]
        may_be_stuck = self._begin(collective, arguments)
        started = getattr(self._gloo, collective)(*hosts, **options)
        work = HcclWork([started], list(_tensors(arguments[:1])), None, may_be_stuck, self._gives_up)
        if self._coalesced is not None:
            self._coalesced.append(work)
        return work

    def _name_of_calls(self, rank: int) -> str:
        return f"{self._id} rank {rank}"

    def _begin(self, collective: str, arguments: Sequence[Any]) -> Callable[[], bool]:
        """Counts a call that begins. Gives what says whether a rank that it cannot be done without has not come."""
        own, others = self.rank(), [rank for rank in range(self.size()) if rank != self.rank()]
        if collective in ("send", "recv"):
            peer, tag = arguments[1:3]
            here, there = (
                f"{self._id} {collective} {own} {peer} {tag}",
                f"{self._id} {_OTHER[collective]} {peer} {own} {tag}",
            )
            number = self._calls_between.setdefault(here, Calls(here)).begin()
            return lambda: self._has_not_begun(peer, number, there)
        number = self._calls.begin()
        root = next((options.rootRank for options in arguments if hasattr(options, "rootRank")), None)
        if collective in _FROM_ROOT and root is not None and root != own:
            return lambda: self._has_not_begun(root, number)
        if collective in _OF_ALL or (collective in _TO_ROOT and root == own):
            return lambda: any(self._has_not_begun(rank, number) for rank in others)
        # Which ranks it goes by is gloo's affair: if it goes by any, none has come.
        return lambda: bool(others) and all(self._has_not_begun(rank, number) for rank in others)

    def _has_not_begun(self, rank: int, number: int, name: str | None = None) -> bool:
        """Whether a rank of the group is known not to have begun the call of that number."""
        calls = self._name_of_calls(rank)
        begun = have_begun(name or calls, by=calls)
        return begun is not None and begun < number

    def _start_coalescing(self, device: torch.device) -> None:
        self._coalesced = []

    def _end_coalescing(self, device: torch.device) -> HcclWork:
        works, self._coalesced = self._coalesced, None
        return _join(works or [])


def _tensors(argument: Any) -> Iterator[torch.Tensor]:
    if isinstance(argument, torch.Tensor):
        yield argument
    elif isinstance(argument, (list, tuple)):
        for item in argument:
            yield from _tensors(item)


def _forward(collective: str) -> Callable[..., HcclWork]:
    def run(self: SimulatedHcclGroup, *arguments: Any, **options: Any) -> HcclWork:
        return self._run(collective, *arguments, **options)

    return run


def _forward_each(collective: str) -> Callable[..., HcclWork]:
    """For a collective of gloo's that takes one output and one input: the same on a list of each."""

    def run(self: SimulatedHcclGroup, outputs: Any, inputs: Any, *arguments: Any, **options: Any) -> HcclWork:
        pairs = zip(outputs, inputs, strict=True)
        return _join([self._run(collective, output, given, *arguments, **options) for output, given in pairs])

    return run


def _allreduce_coalesced(self: SimulatedHcclGroup, tensors: list[torch.Tensor], opts: Any = None) -> HcclWork:
    single = dist.AllreduceOptions()
    if opts is not None:
        single.reduceOp, single.timeout = opts.reduceOp, opts.timeout
    return _join([self._run("allreduce", [tensor], single) for tensor in tensors])


def _alltoall(
    self: SimulatedHcclGroup, outputs: list[torch.Tensor], inputs: list[torch.Tensor], *opts: Any
) -> HcclWork:
    """Gloo has it for one tensor only: what is sent goes into one, and what comes out of one when it is there."""
    sent = torch.cat([self._host(tensor).reshape(-1) for tensor in inputs])
    received = torch.empty(sum(tensor.numel() for tensor in outputs), dtype=sent.dtype)
    received_sizes = [tensor.numel() for tensor in outputs]
    sizes = [tensor.numel() for tensor in inputs]

    def distribute() -> None:
        for output, part in zip(outputs, received.split(received_sizes), strict=True):
            output.copy_(part.view(output.shape))

    may_be_stuck = self._begin("alltoall_base", opts)
    work = self._gloo.alltoall_base(received, sent, received_sizes, sizes, *opts)
    return HcclWork([work], outputs, distribute, may_be_stuck, self._gives_up)


def _barrier(self: SimulatedHcclGroup, *arguments: Any, **options: Any) -> HcclWork:
    """On an NPU it goes through the streams: what was launched before is done behind it."""
    launches.settle()
    return self._run("barrier", *arguments, **options)


# torch calls these by name, in Python and from C++, with the arguments that gloo takes.
_COLLECTIVES: dict[str, Callable[..., HcclWork]] = {
    **{
        name: _forward(name)
        for name in (
            "allreduce",
            "broadcast",
            "reduce",
            "allgather",
            "allgather_coalesced",
            "_allgather_base",
            "gather",
            "scatter",
            "reduce_scatter",
            "_reduce_scatter_base",
            "alltoall_base",
            "send",
            "recv",
            "recv_anysource",
        )
    },
    # torch 2.13's names for some of them, and what gloo lacks.
    "all_gather_single": _forward("_allgather_base"),
    "reduce_scatter_single": _forward("_reduce_scatter_base"),
    "all_to_all_single": _forward("alltoall_base"),
    "allgather_into_tensor_coalesced": _forward_each("_allgather_base"),
    "all_gather_single_coalesced": _forward_each("_allgather_base"),
    "reduce_scatter_tensor_coalesced": _forward_each("_reduce_scatter_base"),
    "reduce_scatter_single_coalesced": _forward_each("_reduce_scatter_base"),
    "allreduce_coalesced": _allreduce_coalesced,
    "alltoall": _alltoall,
    "barrier": _barrier,
}
for _name, _collective in _COLLECTIVES.items():
    setattr(SimulatedHcclGroup, _name, _collective)
