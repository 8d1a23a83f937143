"""Kernels through tdist-opt and bishengir-compile: what they call, and that no signal comes before its data."""

# Arguments of kernels have no Python types.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import triton
import triton.language as tl
from open_pipeline import OpenPipeline, device_functions

import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as shmem

HERE = Path(__file__).parents[1]
SOCS = ["Ascend910B3", "Ascend910_9392"]


def load(path: Path) -> Any:
    """The module at `path`, under a name of its own: Triton reads the source of its kernels."""
    name = f"kernels_of_{path.stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@triton.jit
def put_and_signal(data, source, signals, n, N: tl.constexpr):
    for pe in range(n):
        shmem.putmem(data, source, N * 4, pe)
        shmem.fence()
        shmem.signal_op(signals + pe * 16, 1, shmem.SIGNAL_ADD, pe)
    shmem.quiet()
    shmem.barrier_all()


@triton.jit
def carried_pointers(data, signals, n, N: tl.constexpr):
    lanes = tl.arange(0, N)
    row = dl.symm_at(data, 1)
    for i in range(n):
        tl.store(row + lanes, lanes + i)
        dl.notify(signals, 1, signal=i)
        row += N
        signals += 16


@triton.jit
def gemm_then_notify(a, b, c, signals, N: tl.constexpr, K: tl.constexpr, T: tl.constexpr):
    token = dl.wait(signals, 1, scope="gpu", semantic="acquire", waitValue=1)
    a = dl.consume_token(a, token)
    i = tl.arange(0, T)
    for tile in range(tl.program_id(0), N // T, tl.num_programs(0)):
        sums = tl.zeros((T, T), dtype=tl.float32)
        for k in range(0, K, T):
            left = tl.load(a + i[:, None] * K + (k + i)[None, :])
            sums += tl.dot(left, tl.load(b + (k + i)[:, None] * N + (tile * T + i)[None, :]))
        out = dl.symm_at(c, 0) + i[:, None] * N + (tile * T + i)[None, :]
        tl.store(out, tl.exp(sums).to(tl.float16))
        dl.notify(signals + (tile + 1) * 8, 0, signal=1)


USERS = "multirank/test_as_users_write_them.py"
WORDS = {"data_ptr": "*i64", "signal_ptr": "*i64"}
GEMM = {"a": "*fp16", "b": "*fp16", "c": "*fp16", "signals": "*i64"}


@pytest.mark.parametrize(
    ("kernel", "signature", "constants", "called"),
    [
        ("seed:notify_kernel", {"signal_ptr": "*i64", "rank": "i32"}, {}, {"aclshmem_int64_p"}),
        ("seed:notify_kernel", {"signal_ptr": "*i32", "rank": "i32"}, {}, {"aclshmem_int32_p"}),
        ("seed:wait_kernel", {"signal_ptr": "*i64", "world_size": "i32"}, {}, {"aclshmem_wait_int64"}),
        (f"{USERS}:send", {**WORDS, "rank": "i32"}, {"N": 32}, {"aclshmem_ptr_int64", "aclshmem_int64_p"}),
        (
            f"{USERS}:collect",
            {**WORDS, "out_ptr": "*i64", "world_size": "i32"},
            {"N": 32},
            {"aclshmem_wait_int64", "aclshmem_consume_token_int64_ptr_1d"},
        ),
        (
            put_and_signal,
            {"data": "*fp32", "source": "*fp32", "signals": "*i32", "n": "i32"},
            {"N": 64},
            {
                "aclshmem_float_putmem",
                "aclshmem_fence",
                "aclshmemx_signal_op",
                "aclshmem_quiet",
                "aclshmem_barrier_all",
            },
        ),
        (
            carried_pointers,
            {"data": "*i32", "signals": "*i32", "n": "i32"},
            {"N": 32},
            {"aclshmem_ptr_int32", "aclshmem_int32_p"},
        ),
        (
            gemm_then_notify,
            GEMM,
            {"N": 128, "K": 128, "T": 64},
            {"aclshmem_wait_int64", "aclshmem_consume_token_half_ptr_1d", "aclshmem_ptr_half", "aclshmem_int64_p"},
        ),
    ],
    ids=["notify-64", "notify-32", "wait", "send", "collect", "put", "carried-pointers", "gemm"],
)
def test_kernels_compile_up_to_hivmc(
    pipeline: OpenPipeline,
    tmp_path: Path,
    kernel,
    signature: dict[str, str],
    constants: dict[str, Any],
    called: set[str],
) -> None:
    function = _function(kernel, tmp_path)
    linalg = pipeline.linalg(function, signature, SOCS[0], **constants)
    for soc in SOCS:
        final = pipeline.compile(pipeline.lower(linalg, soc), soc)
        assert pipeline.signal_errors(final) == ""
        assert device_functions(final) == called


def _function(kernel: Any, folder: Path) -> Any:
    if not isinstance(kernel, str):
        return kernel
    file, name = kernel.split(":")
    if file != "seed":
        return getattr(load(HERE / file), name)
    page = (HERE / "data" / "compiler-options-example.txt").read_text()
    example = page.partition("\nimport triton\n")[2].partition("\nCompiler Option Description")[0]
    path = folder / f"seed_{name}_{folder.name}.py"
    path.write_text(f"import triton\n{example}")
    return getattr(load(path), name)


def test_a_signal_without_its_barriers_is_found(pipeline: OpenPipeline) -> None:
    users = load(HERE / USERS)
    send = pipeline.lower(pipeline.linalg(users.send, {**WORDS, "rank": "i32"}, SOCS[0], N=32), SOCS[0])
    bare = "\n".join(line for line in send.splitlines() if "hivm.hir.pipe_barrier" not in line)
    errors = pipeline.signal_errors(pipeline.compile(bare, SOCS[0]))
    line = _line_of("dl.notify", HERE / USERS)
    assert re.search(
        rf"{USERS}:{line}:\d+: error: 'aclshmem_int64_p' may be seen before the data: .* on PIPE_MTE3", errors
    )
    assert re.search(rf"{USERS}:{line - 1}:\d+: note: this one", errors)


@pytest.mark.parametrize("removed", ["hivm.hir.sync_block", "hivm.hir.pipe_barrier"])
def test_a_signal_that_does_not_wait_for_the_other_cores_is_found(pipeline: OpenPipeline, removed: str) -> None:
    gemm = pipeline.lower(pipeline.linalg(gemm_then_notify, GEMM, SOCS[0], N=128, K=128, T=64), SOCS[0])
    bare = "\n".join(line for line in gemm.splitlines() if removed not in line)
    errors = pipeline.signal_errors(pipeline.compile(bare, SOCS[0]))
    assert re.search(r"test_bishengir.py:\d+:\d+: error: 'aclshmem_int64_p' may be seen before the data", errors)


def test_a_kernel_that_waits_compiles_for_ascend950(pipeline: OpenPipeline) -> None:
    collect = load(HERE / USERS).collect
    soc = "Ascend950PR_9589"
    linalg = pipeline.linalg(collect, {**WORDS, "out_ptr": "*i64", "world_size": "i32"}, soc, N=32)
    final = pipeline.compile(pipeline.lower(linalg, soc), soc)
    assert pipeline.signal_errors(final) == ""
    assert device_functions(final) == {"tdist_wait_i64", "tdist_zero"}


def _line_of(text: str, path: Path) -> int:
    (line,) = [number for number, code in enumerate(path.read_text().splitlines(), 1) if text in code]
    return line
