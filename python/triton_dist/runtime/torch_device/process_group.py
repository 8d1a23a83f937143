"""The process group of the backend `hccl` on simulated NPUs: gloo over the memory of tensors on npu."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.futures import Future


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
        done = all([work.wait(timeout) for work in self._works])
        self._call_finish()
        return done

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


def _join(works: Sequence[HcclWork]) -> HcclWork:
    """Several collectives under way, waited for as one."""
    return HcclWork(works, [tensor for work in works for tensor in work.result()])


class SimulatedHcclGroup(dist.ProcessGroup):
    """Collectives on tensors of simulated NPUs.

    Args:
        store: where the ranks of the group meet.
        rank: this process in the group.
        size: how many processes the group has.
        timeout: how long a collective may wait for the others.
    """

    def __init__(self, store: dist.Store, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        options = dist.ProcessGroupGloo._Options()
        options._timeout = timeout
        # By address: a container's host name need not resolve to anything.
        options._devices = [dist.ProcessGroupGloo.create_device(hostname="127.0.0.1")]
        self._gloo = dist.ProcessGroupGloo(store, rank, size, options)
        # torch keeps a group's name, and asks what a group can do, in the backends registered with it.
        for device in ("npu", "cpu"):
            self._register_backend(torch.device(device), dist.ProcessGroup.BackendType.CUSTOM, self._gloo)
        self._coalesced: list[HcclWork] | None = None

    def _run(self, collective: Callable[..., dist.Work], outputs: Any, *arguments: Any) -> HcclWork:
        """Runs a collective of gloo whose arguments are `outputs` and `arguments`, in this order."""
        flat = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        tensors = [t for item in flat for t in (item if isinstance(item, (list, tuple)) else [item])]
        work = HcclWork([collective(self._host(outputs), *(self._host(argument) for argument in arguments))], tensors)
        if self._coalesced is not None:
            self._coalesced.append(work)
        return work

    def _host(self, argument: Any) -> Any:
        """`argument` with every tensor on npu, also in nested lists, replaced by its host alias."""
        if isinstance(argument, torch.Tensor):
            if argument.device.type == "npu":
                return torch.ops.triton_dist_npu.host_alias(argument.detach())
            if argument.device not in self._device_types:
                raise RuntimeError(
                    f"No backend type associated with device type {argument.device.type}: this group has "
                    f"{dist.get_backend_config(self)}"
                )
            return argument
        if isinstance(argument, (list, tuple)):
            return [self._host(item) for item in argument]
        return argument

    @property
    def _device_types(self) -> list[torch.device]:
        # torch lets a group like this one take the place of those that it has made for other devices, as for
        # "cpu:gloo,npu:hccl": their collectives come here too.
        devices = dist.get_backend_config(self).split(",")
        return [torch.device(device.partition(":")[0]) for device in devices]

    # ------------------------------------------------------------------------ one tensor in, one out

    def allreduce(self, tensors: list[torch.Tensor], opts: Any = None) -> HcclWork:
        return self._run(self._gloo.allreduce, tensors, opts or dist.AllreduceOptions())

    def allreduce_coalesced(self, tensors: list[torch.Tensor], opts: Any = None) -> HcclWork:
        single = dist.AllreduceOptions()
        if opts is not None:
            single.reduceOp = opts.reduceOp
            single.timeout = opts.timeout
        return _join([self.allreduce([tensor], single) for tensor in tensors])

    def broadcast(self, tensors: list[torch.Tensor], opts: Any = None) -> HcclWork:
        return self._run(self._gloo.broadcast, tensors, opts or dist.BroadcastOptions())

    def reduce(self, tensors: list[torch.Tensor], opts: Any = None) -> HcclWork:
        return self._run(self._gloo.reduce, tensors, opts or dist.ReduceOptions())

    # ---------------------------------------------------------------------------- gather and scatter

    def allgather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None) -> HcclWork:
        return self._run(self._gloo.allgather, outputs, inputs, opts or dist.AllgatherOptions())

    def allgather_coalesced(
        self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None
    ) -> HcclWork:
        return self._run(self._gloo.allgather_coalesced, outputs, inputs, opts or dist.AllgatherOptions())

    def _allgather_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> HcclWork:  # noqa: A002
        return self._run(self._gloo._allgather_base, output, input, opts or dist.AllgatherOptions())

    all_gather_single = _allgather_base

    def all_gather_single_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> HcclWork:
        return _join([self._allgather_base(out, given, opts) for out, given in zip(outputs, inputs, strict=True)])

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def gather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None) -> HcclWork:
        return self._run(self._gloo.gather, outputs, inputs, opts or dist.GatherOptions())

    def scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any = None) -> HcclWork:
        return self._run(self._gloo.scatter, outputs, inputs, opts or dist.ScatterOptions())

    def reduce_scatter(
        self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any = None
    ) -> HcclWork:
        return self._run(self._gloo.reduce_scatter, outputs, inputs, opts or dist.ReduceScatterOptions())

    def _reduce_scatter_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> HcclWork:  # noqa: A002
        return self._run(self._gloo._reduce_scatter_base, output, input, opts or dist.ReduceScatterOptions())

    reduce_scatter_single = _reduce_scatter_base

    def reduce_scatter_single_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> HcclWork:
        return _join(
            [self._reduce_scatter_base(out, given, opts) for out, given in zip(outputs, inputs, strict=True)]
        )

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    # ------------------------------------------------------------------------------------ all to all

    def alltoall(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None) -> HcclWork:
        # Gloo has it for one tensor only.
        joined = torch.cat([self._host(tensor).reshape(-1) for tensor in inputs])
        received = torch.empty(sum(tensor.numel() for tensor in outputs), dtype=joined.dtype)
        work = self._gloo.alltoall_base(
            received,
            joined,
            [tensor.numel() for tensor in outputs],
            [tensor.numel() for tensor in inputs],
            opts or dist.AllToAllOptions(),
        )

        def distribute() -> None:
            parts = received.split([tensor.numel() for tensor in outputs])
            for output, part in zip(outputs, parts, strict=True):
                output.copy_(part.view(output.shape))

        return HcclWork([work], outputs, distribute)

    def alltoall_base(
        self,
        output: torch.Tensor,
        input: torch.Tensor,  # noqa: A002
        output_split_sizes: Sequence[int],
        input_split_sizes: Sequence[int],
        opts: Any = None,
    ) -> HcclWork:
        options = opts or dist.AllToAllOptions()
        return self._run(
            self._gloo.alltoall_base, output, input, list(output_split_sizes), list(input_split_sizes), options
        )

    all_to_all_single = alltoall_base

    # -------------------------------------------------------------------------------- point to point

    def send(self, tensors: list[torch.Tensor], rank: int, tag: int = 0) -> HcclWork:
        return self._run(self._gloo.send, tensors, rank, tag)

    def recv(self, tensors: list[torch.Tensor], rank: int, tag: int = 0) -> HcclWork:
        return self._run(self._gloo.recv, tensors, rank, tag)

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int = 0) -> HcclWork:
        return self._run(self._gloo.recv_anysource, tensors, tag)

    # ------------------------------------------------------------------------------------------ rest

    def barrier(self, opts: Any = None) -> HcclWork:
        return HcclWork([self._gloo.barrier(opts or dist.BarrierOptions())], [])

    def _start_coalescing(self, device: torch.device) -> None:
        self._coalesced = []

    def _end_coalescing(self, device: torch.device) -> HcclWork:
        works, self._coalesced = self._coalesced, None
        return _join(works or [])

    def getBackendName(self) -> str:  # noqa: N802 - torch's name
        return "hccl"
