"""What the extern calls of `triton_dist.language` do when a program is interpreted.

Each stands for the function of the simulator's runtime of the same name (csrc/runtime/include/tdist_sim.h), on plain
numbers. Puts, gets and signals are complete when they return.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton_dist.interpreter import turns
from triton_dist.interpreter.waits import BarrierWait, WordWait
from triton_dist.runtime import job
from triton_dist.runtime.job import Job

# Triton's dialect counts SET and ADD from 1, aclshmem from 0.
_SHMEM_OP_OF_NOTIFY = {1: 0, 2: 1}
_EQ = 0
_SIGNAL_STRIDE = 64
_SIGNAL_BYTES = 4


def _rank(_axis: int) -> int:
    return job.require("rank").rank


def _world_size(_axis: int) -> int:
    return job.require("num_ranks").world_size


def _team(name: str, of_job: Callable[[Job], int]) -> Callable[[int], int]:
    def call(team: int) -> int:
        if team != 0:
            raise ValueError(f"{name}: team {team} does not exist: simulated NPUs have team 0 only, all PEs")
        return of_job(job.require(name))

    return call


def _zero(_operand: int) -> int:
    return 0


def _sub_vec_num(_operand: int) -> int:
    if turns.require("sub_vec_num").launch.uses_cube:
        raise NotImplementedError("sub_vec_num is not available in a kernel with a dot: it is 1 here, and 2 on an NPU")
    return 1


def _delta(address: int, pe: int, element_bytes: int) -> int:
    current = job.require("symm_at")
    current.heap.check_range(address, element_bytes, pe, "symm_at")
    return (current.heap.translate(address, pe) - address) // element_bytes


def _notify(width: int) -> Callable[..., int]:
    def call(address: int, pe: int, value: int, op: int, _scope: int) -> int:
        job.require("notify").heap.signal(address, width, value, _SHMEM_OP_OF_NOTIFY[op], pe, "notify")
        return 0

    return call


def _wait(width: int) -> Callable[..., int]:
    def call(address: int, count: int, value: int, _scope: int, _semantic: int) -> int:
        turns.wait_for(WordWait("wait", job.require("wait"), address, width, count, _SIGNAL_STRIDE, _EQ, value))
        return 0

    return call


def _barrier(primitive: str) -> Callable[[int], int]:
    def call(_zero: int) -> int:
        turns.wait_for(BarrierWait(primitive, job.require(primitive), turns.require(primitive).launch))
        return 0

    return call


def _quiet(_zero: int) -> int:
    job.require("quiet").heap.quiet()
    return 0


def _fence(_zero: int) -> int:
    job.require("fence").heap.fence()
    return 0


def _put(name: str) -> Callable[..., int]:
    def call(destination: int, source: int, bytes_: int, pe: int) -> int:
        job.require(name).heap.put(destination, source, bytes_, pe, name)
        return 0

    return call


def _get(name: str) -> Callable[..., int]:
    def call(destination: int, source: int, bytes_: int, pe: int) -> int:
        job.require(name).heap.get(destination, source, bytes_, pe, name)
        return 0

    return call


def _put_signal(name: str) -> Callable[..., int]:
    def call(destination: int, source: int, bytes_: int, address: int, signal: int, op: int, pe: int) -> int:
        heap = job.require(name).heap
        # Before the copy: a call that is wrong must not have done half of its work.
        heap.check_range(address, _SIGNAL_BYTES, pe, name, align=_SIGNAL_BYTES)
        heap.put(destination, source, bytes_, pe, name)
        heap.signal(address, _SIGNAL_BYTES, signal, op, pe, name)
        return 0

    return call


def _signal_op(address: int, signal: int, op: int, pe: int) -> int:
    job.require("signal_op").heap.signal(address, _SIGNAL_BYTES, signal, op, pe, "signal_op")
    return 0


def _int_p(address: int, value: int, pe: int) -> int:
    job.require("int_p").heap.signal(address, _SIGNAL_BYTES, value, 0, pe, "int_p")
    return 0


def _signal_wait_until(address: int, compare: int, value: int) -> int:
    name = "signal_wait_until"
    wait = WordWait(name, job.require(name), address, _SIGNAL_BYTES, 1, _SIGNAL_BYTES, compare, value)
    turns.wait_for(wait)
    return wait.seen


CALLS: dict[str, Callable[..., Any]] = {
    "tdist_my_pe": _rank,
    "tdist_n_pes": _world_size,
    "tdist_team_my_pe": _team("team_my_pe", lambda current: current.rank),
    "tdist_team_n_pes": _team("team_n_pes", lambda current: current.world_size),
    "tdist_sub_vec_id": _zero,
    "tdist_sub_vec_num": _sub_vec_num,
    "tdist_zero": _zero,
    "tdist_delta": _delta,
    "tdist_notify_i32": _notify(4),
    "tdist_notify_i64": _notify(8),
    "tdist_wait_i32": _wait(4),
    "tdist_wait_i64": _wait(8),
    "tdist_barrier_all": _barrier("barrier_all"),
    "tdist_barrier_all_vec": _barrier("barrier_all_vec"),
    "tdist_quiet": _quiet,
    "tdist_fence": _fence,
    "tdist_putmem": _put("putmem"),
    "tdist_putmem_nbi": _put("putmem_nbi"),
    "tdist_getmem": _get("getmem"),
    "tdist_getmem_nbi": _get("getmem_nbi"),
    "tdist_putmem_signal": _put_signal("putmem_signal"),
    "tdist_putmem_signal_nbi": _put_signal("putmem_signal_nbi"),
    "tdist_signal_op": _signal_op,
    "tdist_signal_wait_until": _signal_wait_until,
    "tdist_int_p": _int_p,
}
"""Symbol of an extern call, and what it does. Operands and result are Python integers."""
