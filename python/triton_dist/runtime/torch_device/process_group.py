"""The process group of the backend `hccl` on simulated NPUs: gloo over the memory of tensors on npu."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.futures import Future

from triton_dist import env
from triton_dist.runtime import launches
from triton_dist.runtime.native import HostState

# How long a collective is waited for before a look at the other ranks.
_LOOK_SECONDS = 0.05


class HcclWork(dist.Work):
    """One or more collectives under way.

    Gloo holds the host aliases of the tensors until it is done; callers get back the tensors that they gave.

    Args:
        works: gloo's, in the order in which they were started.
        outputs: the tensors that they write.
        finish: called once, when all are done: what must happen before the tensors may be read.
    """

    def __init__(
        self, works: Sequence[dist.Work], outputs: list[torch.Tensor], finish: Callable[[], None] | None = None
    ) -> None:
        super().__init__()
        self._works = works
        self._outputs = outputs
        self._finish = finish

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Blocks until the collectives are done; an error of theirs comes out here."""
        with launches.host_state(HostState.IN_HCCL):
            if not timeout:
                for work in self._works:
                    _look_until_done(work)
            results = [work.wait(timeout) for work in self._works]
        self._call_finish()
        return all(results)

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


def _look_until_done(work: dist.Work) -> None:
    """Waits for a collective, and looks now and then whether the other ranks can still come to it."""
    try:
        future = work.get_future()
    except RuntimeError:
        return  # gloo's send and recv have none
    done = threading.Event()
    future.add_done_callback(lambda _: done.set())
    while not done.wait(_LOOK_SECONDS):
        launches.look()


def _interfaces() -> list[dict[str, str]]:
    """How gloo is told which interfaces to use: the loopback, unless GLOO_SOCKET_IFNAME names others."""
    names = env.GLOO_SOCKET_IFNAME.get()
    if names is None:
        # By address: a container's host name need not resolve to anything.
        return [{"hostname": "127.0.0.1"}]
    return [{"interface": name.strip()} for name in names.split(",")]


def _join(works: Sequence[HcclWork]) -> HcclWork:
    """Several collectives under way, waited for as one."""
    return HcclWork(works, [tensor for work in works for tensor in work.result()])


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
        options._devices = [gloo.create_device(**where) for where in _interfaces()]
        self._gloo = gloo(store, rank, size, options)
        self._coalesced: list[HcclWork] | None = None
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
        work = HcclWork([getattr(self._gloo, collective)(*hosts, **options)], list(_tensors(arguments[:1])))
        if self._coalesced is not None:
            self._coalesced.append(work)
        return work

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

    work = self._gloo.alltoall_base(received, sent, received_sizes, sizes, *opts)
    return HcclWork([work], outputs, distribute)


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
