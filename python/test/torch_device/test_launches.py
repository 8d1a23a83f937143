"""Launches beside the host: what waits for them, what goes on, how errors come out, how a process ends with some."""

# Arguments of kernels have no Python types, and torch gets its `npu` when it is imported.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

import gc
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl

import triton_dist.language as dl
from triton_dist import env

DEADLINE_SECONDS = 120.0


@triton.jit
def wait_for(flag, out):
    while tl.atomic_add(flag, 0) == 0:
        pass
    tl.store(out, tl.load(out) + 1)


@triton.jit
def set_flag(flag):
    tl.store(flag, 1)


@triton.jit
def ask_rank(out):
    tl.store(out, dl.rank())


@triton.jit
def add(x, amount, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, tl.load(x + i) + amount)


@pytest.fixture
def flag() -> Iterator[torch.Tensor]:
    """What `wait_for` waits for; set at the latest when the test ends."""
    tensor = torch.zeros(1, dtype=torch.int32).npu()
    yield tensor
    release(tensor)
    torch.npu.synchronize()


def release(flag: torch.Tensor) -> None:
    """Ends the waits for `flag`: by a kernel, as torch's operators would wait for those that were given it."""
    with torch.npu.stream(torch.npu.Stream()):
        set_flag[1,](flag)


def test_a_launch_returns_at_once_and_its_stream_waits(flag) -> None:
    out, counted = torch.zeros(1).npu(), torch.zeros(16).npu()
    stream = torch.npu.Stream()
    with torch.npu.stream(stream):
        wait_for[1,](flag, out)
        add[1,](counted, 2, 16)
    assert not stream.query()
    release(flag)
    stream.synchronize()
    assert stream.query()
    assert counted.tolist() == [2] * 16


def test_operators_wait_for_the_launches_that_were_given_their_memory(flag) -> None:
    x = torch.zeros(64).npu()
    for _ in range(3):
        add[1,](x[32:], 1, 32)  # the same storage
    assert x.sum().item() == 96
    assert (x + 1).cpu()[32] == 4
    x.zero_()
    add[1,](x, 5, 64)
    assert repr(x[:2]) == "tensor([5., 5.], device='npu:0')"
    add[1,](x, 1, 64)
    host = torch.empty(64)
    host.copy_(x)
    assert host.tolist() == [6] * 64
    add[1,](x, 1, 64)
    x.resize_(4096)
    assert x[:64].tolist() == [7] * 64


def test_operators_on_other_memory_go_on(flag) -> None:
    out = torch.zeros(1).npu()
    wait_for[1,](flag, out)
    other = torch.arange(100).npu()
    assert other.sum().item() == 4950
    assert not torch.npu.current_stream().query()


def test_an_operator_of_another_stream_does_not_wait_unless_it_is_told(flag) -> None:
    out, stream = torch.zeros(1).npu(), torch.npu.Stream()
    with torch.npu.stream(stream):
        wait_for[1,](flag, out)
    assert out.item() == 0
    release(flag)
    torch.npu.current_stream().wait_stream(stream)
    assert out.item() == 1


def test_events(flag) -> None:
    out, stream = torch.zeros(1).npu(), torch.npu.Stream()
    start, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    with torch.npu.stream(stream):
        start.record()
        wait_for[1,](flag, out)
        end.record()
        behind = stream.record_event()
    start.synchronize()
    assert [event.query() for event in (start, end, behind)] == [True, False, False]
    torch.npu.current_stream().wait_event(end)
    add[1,](out, 1, 1)
    release(flag)
    end.synchronize()
    assert end.query()
    assert behind.query()
    assert start.elapsed_time(end) > 0
    assert out.item() == 2


def test_memory_lives_as_long_as_the_launches_that_were_given_it(flag) -> None:
    before = torch.npu.memory_allocated()
    out = torch.zeros(1 << 16).npu()
    address = out.data_ptr()
    wait_for[1,](flag, out)
    del out
    gc.collect()
    assert torch.npu.memory_allocated() - before == 4 << 16
    others = [torch.zeros(1 << 16).npu() for _ in range(8)]
    assert address not in [other.data_ptr() for other in others]
    release(flag)
    torch.npu.synchronize()
    assert all(other.count_nonzero().item() == 0 for other in others)
    del others
    assert torch.npu.memory_allocated() == before


def here() -> int:
    """The line that calls this."""
    return sys._getframe(1).f_lineno


def wait_by_copy(x: torch.Tensor) -> None:
    x.cpu()


def wait_for_stream(x: torch.Tensor) -> None:
    torch.npu.current_stream().synchronize()


def wait_for_all(x: torch.Tensor) -> None:
    torch.npu.synchronize()


def wait_for_event(x: torch.Tensor) -> None:
    torch.npu.current_stream().record_event().synchronize()


@pytest.mark.parametrize("wait", [wait_for_all, wait_for_stream, wait_for_event, wait_by_copy])
def test_an_error_comes_out_where_the_host_waits(wait: Callable[[torch.Tensor], None]) -> None:
    out = torch.zeros(4, dtype=torch.int32).npu()
    line = here() + 1
    ask_rank[1,](out)
    add[1,](out, 1, 4)
    with pytest.raises(RuntimeError, match="aclshmem is not initialised") as raised:
        wait(out)
    text = str(raised.value)
    assert "kernel ask_rank, program (0,0,0)" in text
    assert text.endswith(f"; launched at {__file__}:{line}")
    torch.npu.synchronize()  # it is told once
    assert out.tolist() == [0] * 4  # what came behind it in its stream was not done
    add[1,](out, 1, 4)
    assert out.tolist() == [1] * 4


def test_a_blocking_launch_raises_its_own_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(env.ASCEND_LAUNCH_BLOCKING.name, "1")

    @triton.jit
    def fails(out):
        tl.store(out, dl.num_ranks())

    with pytest.raises(RuntimeError, match="kernel fails"):
        fails[1,](torch.zeros(1, dtype=torch.int32).npu())


SCRIPT = """
import sys
import torch, triton, triton.language as tl

@triton.jit
def wait_for(flag, out):
    while tl.atomic_add(flag, 0) == 0:
        pass
    tl.store(out, 1)

@triton.jit
def say(out):
    tl.device_print("it ran", 1)

flag, out = torch.zeros(1, dtype=torch.int32).npu(), torch.zeros(1).npu()
"""


def start(tmp_path: Path, end: str) -> subprocess.Popen[str]:
    program = tmp_path / "program.py"
    program.write_text(SCRIPT + end)
    command = [sys.executable, str(program)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("wait", ["torch.npu.synchronize()", "out.cpu()", "torch.npu.current_stream().synchronize()"])
def test_ctrl_c_ends_a_wait(tmp_path: Path, wait: str) -> None:
    with start(tmp_path, f"wait_for[1,](flag, out)\nprint('launched', flush=True)\n{wait}\n") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "launched\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=DEADLINE_SECONDS)
    assert errors.splitlines()[-1] == "KeyboardInterrupt", errors
    assert process.returncode == -signal.SIGINT


def test_a_process_may_end_with_a_launch_that_waits(tmp_path: Path) -> None:
    with start(tmp_path, "wait_for[1,](flag, out)\nprint('end')\n") as process:
        output, errors = process.communicate(timeout=DEADLINE_SECONDS)
    assert (process.returncode, output) == (0, "end\n"), errors
    assert "given up" in errors


def test_a_process_ends_when_its_launches_have(tmp_path: Path) -> None:
    with start(tmp_path, "say[1,](out)\n") as process:
        output, errors = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, errors
    assert "it ran" in output + errors
    assert "given up" not in errors


def test_an_error_that_nobody_waited_for_is_told_at_the_end(tmp_path: Path) -> None:
    end = """
import triton_dist.language as dl

@triton.jit
def ask_rank(out):
    tl.store(out, dl.rank())

ask_rank[1,](flag)
"""
    with start(tmp_path, end) as process:
        _, errors = process.communicate(timeout=DEADLINE_SECONDS)
    assert "aclshmem is not initialised" in errors
    assert "launched at" in errors
