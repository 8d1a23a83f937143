"""The second layer, `shmem.core`: buffers, and errors of its own."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import host_api
import light_ranks
import pytest

from triton_dist.shims import shmem as ash
from triton_dist.shims.shmem import core
from triton_dist.shims.shmem.core.utils import AclshmemError, AclshmemInvalid

INTPTR_MAX = (1 << 63) - 1
SIZE_MAX = (1 << 64) - 1


@pytest.mark.parametrize(
    "arguments",
    [(0, 1), (False, 1), (True, 1), (INTPTR_MAX + 1, 1), (1, 0), (1, True), (1, SIZE_MAX + 1), ("1", 1)],
)
def test_impossible_buffers_are_refused(arguments: tuple[Any, Any]) -> None:
    with pytest.raises(AclshmemInvalid, match="it must be an integer from 1 to"):
        core.Buffer(*arguments)


def test_a_buffer_of_somebody_elses_memory() -> None:
    buffer = core.Buffer(INTPTR_MAX, SIZE_MAX)
    assert (buffer.addr, buffer.length, buffer.mem_type) == (INTPTR_MAX, SIZE_MAX, core.MemType.DEVICE_SIDE)
    assert (buffer.owned, buffer.instance_id, buffer.release_called) == (False, None, False)
    assert buffer == core.Buffer(INTPTR_MAX, SIZE_MAX) != core.Buffer(1, 1)
    with pytest.raises(AclshmemInvalid, match="does not own its memory"):
        core.free(buffer)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"initializer_method": "mpi"}, "initializer_method is 'mpi'"),
        ({"uid": None}, "init needs uid"),
        ({"rank": None, "mem_size": None}, "init needs rank, mem_size"),
        ({"rank": 2}, "rank is 2: it must be an integer from 0 to 1"),
        ({"nranks": 0}, "nranks is 0"),
        ({"mem_size": True}, "mem_size is True"),
        ({"uid": b"short"}, "has 512 bytes, not 5"),
        ({"uid": 3}, "uid must be a UniqueID or its bytes"),
        ({"instance_id": 255}, "instance_id is 255"),
    ],
)
def test_impossible_initialisations_are_refused(changes: dict[str, Any], told: str) -> None:
    arguments = {"rank": 0, "nranks": 2, "mem_size": 1 << 20, "uid": core.get_unique_id(), "initializer_method": "uid"}
    with pytest.raises(AclshmemInvalid, match=told):
        core.init(**{**arguments, **changes})


def test_use_outside_of_a_job_is_an_error_of_this_layer() -> None:
    for call in (lambda: core.buffer(64), lambda: core.barrier_all(), lambda: core.current_instance()):
        with pytest.raises(AclshmemError, match="initialise"):
            call()
    core.finalize()  # nothing to leave


def refused(call: Any, *arguments: Any) -> str:
    text = host_api.error(call, *arguments)
    assert text.startswith("AclshmemInvalid: "), text
    return text


def everything(rank: int, world_size: int, uid: bytes) -> None:
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    core.init(rank=rank, nranks=world_size, mem_size=1 << 20, uid=uid, initializer_method="uid")
    assert core.direct.init_status() is core.direct.InitStatus.INITIALIZED
    assert (core.direct.my_pe(), core.direct.n_pes()) == (rank, world_size)
    assert (core.direct.team_my_pe(0), core.direct.team_n_pes(5)) == (rank, -1)

    send, receive = core.buffer(256), core.calloc(64, 4)
    signal, aligned = core.calloc(1, 4), core.align(512, 100)
    assert (receive.length, signal.length, aligned.length, aligned.addr % 512) == (256, 4, 100, 0)
    assert (send.owned, send.instance_id, send.release_called) == (True, core.current_instance(), False)
    host_api.int32s(send.addr, 64)[:] = [rank] * 64
    core.barrier_all()

    set_, add = core.direct.SignalOp.SIGNAL_SET, core.direct.SignalOp.SIGNAL_ADD
    equal = core.direct.ComparisonType.CMP_EQ
    core.put_signal(receive, send, signal, 2, set_, after)
    core.signal_wait(signal, 2, equal, stream=0)
    assert list(host_api.int32s(receive.addr, 64)) == [before] * 64
    core.barrier(core.ACLSHMEM_TEAM_WORLD)
    core.signal_op(signal, 3, add, after, stream=0)
    core.signal_wait(signal, 5, equal, stream=0)
    core.get(receive, send, after)
    assert list(host_api.int32s(receive.addr, 64)) == [after] * 64
    core.sync_all()
    core.put(receive, send, after, stream=0)
    core.quiet(stream=0)
    core.barrier_all_on_stream(0)
    assert list(host_api.int32s(receive.addr, 64)) == [before] * 64
    core.handle_wait(core.Handle(), 0)

    peer = core.get_peer_buffer(send, after)
    assert (peer.owned, peer.length, host_api.int32s(peer.addr, 1)[0]) == (False, 256, after)
    core.sync(0)
    local = (ctypes.c_int32 * 64)()
    mine = core.Buffer(ctypes.addressof(local), 256)
    core.get(mine, send, after)
    assert list(local) == [after] * 64

    small = core.Buffer(receive.addr, 255)
    assert "dst has 255 bytes, fewer than src with 256" in refused(core.put, small, send, after)
    assert "remote_pe is" in refused(core.put, receive, send, world_size)
    assert "remote_pe is True" in refused(core.get, receive, send, True)
    assert "stream is None" in refused(core.quiet, None)
    assert "stream is -1" in refused(core.put, receive, send, after, -1)
    assert "a signal word has 4" in refused(core.signal_op, core.Buffer(signal.addr, 3), 1, set_, after, 0)
    assert "a signal word has 4" in refused(core.signal_wait, core.Buffer(signal.addr + 1, 4), 1, equal, 0)
    assert "must be a SignalOp" in refused(core.signal_op, signal, 1, equal, after, 0)
    assert "must be a ComparisonType" in refused(core.signal_wait, signal, 1, set_, 0)
    assert "not in the symmetric heap" in refused(core.put, mine, send, after)
    assert "ub_size is 127" in refused(core.set_rdma_config, 0, 127, 0)
    core.set_mte_config(0, 128, 0)
    assert core.get_prof() is None
    assert "has no counterpart" in host_api.error(core.get_peer_buffer, mine, after)
    assert "buf does not own" in refused(core.free, peer)
    assert "no room" in host_api.error(core.buffer, 1 << 21)
    with core.multi_instance(0):
        core.set_instance(0)
    assert host_api.error(core.set_instance, 1) == "AclshmemError: instance 1 is not initialised"
    core.barrier_all()

    # Of two threads that free a buffer, one does.
    results: list[str] = []

    def free() -> None:
        try:
            core.free(send)
            results.append("freed")
        except AclshmemInvalid:
            results.append("refused")

    threads = [threading.Thread(target=free) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["freed", "refused"]
    assert send.release_called
    assert peer.release_called
    assert "has been freed" in refused(core.put, receive, send, after)
    for buffer in (receive, signal, aligned):
        core.free(buffer)
    core.finalize()


def test_the_whole_layer_in_a_ring() -> None:
    light_ranks.values(light_ranks.run(everything, 2, ash.aclshmem_get_unique_id()))
