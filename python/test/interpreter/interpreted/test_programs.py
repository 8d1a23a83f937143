"""Programs of one launch, interpreted: they run concurrently, and every wait has an end."""

# Arguments of kernels have no Python types, and torch gets its `npu` when it is imported.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator

import pytest
import shmem as ash
import torch
import triton
import triton.language as tl

import triton_dist
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem
from triton_dist.runtime import session

SLOT = 8
PROGRAMS = 40


@pytest.fixture
def words() -> Iterator[torch.Tensor]:
    """Zeroed signal words, a slot for each program, in a job of one rank."""
    attributes = ash.InitAttr()
    attributes.my_rank, attributes.n_ranks = 0, 1
    attributes.local_mem_size, attributes.ip_port = 1 << 20, "tcp://127.0.0.1:8666"
    assert ash.aclshmem_init(attributes) == 0
    tensor = ash.aclshmem_create_tensor([PROGRAMS * SLOT], dtype=torch.int64, device_id=0).zero_()
    yield tensor
    ash.aclshmem_free_tensor(tensor)
    ash.aclshmem_finalize()


@triton.jit
def relay(signals, order, PROGRAMS: tl.constexpr, SLOT: tl.constexpr):
    """The last program begins; each waits for the one after it."""
    program = tl.program_id(0)
    if program < PROGRAMS - 1:
        dl.wait(signals + (program + 1) * SLOT, 1, "gpu", "acquire")
    tl.store(order + program, tl.atomic_add(order + PROGRAMS, 1))
    dl.notify(signals + program * SLOT, 0)


@triton.jit
def spins(lock, turns):
    """Program 0 holds the lock until program 1 has asked for it."""
    if tl.program_id(0) == 0:
        while tl.atomic_cas(turns, 1, 2) != 1:
            pass
        tl.atomic_xchg(lock, 0)
    else:
        tl.atomic_xchg(turns, 1)
        while tl.atomic_cas(lock, 0, 1) != 0:
            pass


@triton.jit
def loads_until(flag):
    if tl.program_id(0) == 0:
        while tl.load(flag) == 0:
            pass
    else:
        tl.store(flag, 1)


@triton.jit
def meets(counts, SLOT: tl.constexpr):
    program = tl.program_id(0)
    for step in range(3):
        tl.atomic_add(counts + step * SLOT, 1)
        shmem.barrier_all()
        tl.device_assert(tl.load(counts + step * SLOT) == tl.num_programs(0))
    tl.store(counts + (3 + program) * SLOT, 1)


@triton.jit
def some_meet():
    if tl.program_id(0) > 0:
        shmem.barrier_all()  # LINE


@triton.jit
def waits_for_nobody(signals):
    dl.wait(signals, 1, "gpu", "acquire", waitValue=7)  # LINE


@triton.jit
def fails(signals, SLOT: tl.constexpr):
    if tl.program_id(0) == 1:
        dl.notify(signals, 5)  # LINE
    dl.wait(signals, 1, "gpu", "acquire")


def line_of(kernel: triton.JITFunction) -> int:
    import inspect

    lines, first = inspect.getsourcelines(kernel.fn)
    return first + next(i for i, line in enumerate(lines) if line.rstrip().endswith("# LINE"))


def test_programs_wait_for_each_other(words: torch.Tensor) -> None:
    order = torch.zeros(PROGRAMS + 1, dtype=torch.int32).npu()
    relay[(PROGRAMS,)](words, order, PROGRAMS, SLOT)
    assert order[:PROGRAMS].tolist() == list(reversed(range(PROGRAMS)))


@pytest.mark.parametrize("kernel", [spins, loads_until])
def test_a_program_that_spins_does_not_starve_the_other(kernel: triton.JITFunction) -> None:
    state = [torch.tensor([value], dtype=torch.int32).npu() for value in (1, 0)]
    kernel[(2,)](*(state if kernel is spins else state[1:]))
    assert [tensor.item() for tensor in state] == ([1, 2] if kernel is spins else [1, 1])


def test_all_programs_meet_in_a_barrier(words: torch.Tensor) -> None:
    meets[(5,)](words, SLOT)
    assert words.reshape(PROGRAMS, SLOT)[:8, 0].tolist() == [5, 5, 5, 1, 1, 1, 1, 1]


def test_a_barrier_that_cannot_be_passed_is_an_error(words: torch.Tensor) -> None:
    with pytest.raises(RuntimeError, match=rf"program \(0,0,0\) of the same launch has ended.*:{line_of(some_meet)}"):
        some_meet[(3,)]()
    with pytest.raises(RuntimeError, match="only 40 run at a time"):
        meets[(PROGRAMS + 1,)](words, SLOT)


def test_an_error_names_the_line_and_ends_the_others(words: torch.Tensor) -> None:
    with pytest.raises(triton.runtime.errors.InterpreterError) as caught:
        fails[(3,)](words, SLOT)
    text = str(caught.value)
    assert re.search(
        r"ValueError: notify: there is no PE 5: the job has PEs 0 to 0; kernel fails, program \(1,0,0\)", text
    )
    assert f"{__file__}:{line_of(fails)}, rank 0" in text
    assert text.endswith("dl.notify(signals, 5)  # LINE")


def test_primitives_need_a_kernel_and_a_job() -> None:
    with pytest.raises(RuntimeError, match="works in kernels only"):
        dl.rank()
    with pytest.raises(RuntimeError, match=r"wait (needs shmem to be initialised|was called after aclshmem_finalize)"):
        waits_for_nobody[(1,)](torch.zeros(1, dtype=torch.int64).npu())


def test_a_deadlock_is_told_as_of_compiled_kernels(words: torch.Tensor) -> None:
    with pytest.raises(triton_dist.DeadlockError, match="no rank can go on") as caught:
        waits_for_nobody[(1,)](words)
    place = f"test_programs.py:{line_of(waits_for_nobody)} wait"
    assert re.search(rf"0 +\(0,0,0\) +waits_for_nobody +{place} .* == 7 +0 +never", str(caught.value)), caught.value


def test_ctrl_c_ends_a_wait_which_is_described_meanwhile(words: torch.Tensor) -> None:
    described = []

    def interrupt() -> None:
        described.extend(session.describe_waits())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.3, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        waits_for_nobody[(1,)](words)
    timer.join()
    (wait,) = described
    assert (wait["kernel"], wait["program"], wait["line"]) == ("waits_for_nobody", [0, 0, 0], line_of(waits_for_nobody))
    assert (wait["primitive"], wait["compare"], wait["wanted"], wait["has"]) == ("wait", "==", 7, 0)
    assert (wait["pe_offset"], wait["index"], wait["count"]) == (
        words.data_ptr() - wait["address"] + wait["pe_offset"],
        0,
        1,
    )
