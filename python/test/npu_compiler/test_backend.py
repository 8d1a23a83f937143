"""Our stage in triton-ascend's backend, and what the NPU's compiler is run with, at the border of its process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from triton._C.libtriton import ir
from triton.backends.ascend import compiler as stock
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource

from triton_dist import env
from triton_dist.compiler.errors import KernelCompileError
from triton_dist.compiler.npu import tools
from triton_dist.compiler.npu.backend import STAGE, wrapped

from . import newer_backend, sample_kernels

SOC = "Ascend910B3"
SYMBOLS = "aclshmem_my_pe aclshmem_n_pes aclshmem_ptr_float aclshmem_int64_p aclshmem_wait_int64"
CONSUME = "aclshmem_consume_token_float_ptr_1d"

# Records its arguments and the IR that it got; knows of flags what `--help` says.
_COMPILER = """\
#!{python}
import json, pathlib, sys
record = pathlib.Path({record!r})
if "--help" in sys.argv or "--help-hidden" in sys.argv:
    print("  --target=<value>\\n  --limit-auto-multi-buffer-buffer=<value>\\n{flags}")
    sys.exit()
source = next(a for a in sys.argv[1:] if not a.startswith("-"))
record.write_text(json.dumps([sys.argv[1:], pathlib.Path(source).read_text()]))
pathlib.Path(sys.argv[sys.argv.index("-o") + 1] + ".o").write_bytes(b"binary")
"""


class _Device:
    """What triton-ascend asks the NPU."""

    def get_arch(self) -> str:
        return SOC


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a compiler on PATH that records what it is run with; gives a function that reads the record."""
    directory = tmp_path / "bin"
    directory.mkdir()
    record = tmp_path / "record.json"

    def install(*flags: str) -> None:
        text = "\\n".join(f"  --{flag}" for flag in flags)
        program = directory / "bishengir-compile"
        program.write_text(_COMPILER.format(python=sys.executable, record=str(record), flags=text))
        program.chmod(0o755)

    install("link-aicore-bitcode=<string>")
    wheel = tools.wheel_directory()
    if wheel is not None:
        (directory / "bishengir-opt").symlink_to(wheel / "bin" / "bishengir-opt")
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{env.child_environ()['PATH']}")
    monkeypatch.setattr(stock, "NPUUtils", _Device)
    tools._help.cache_clear()

    def seen() -> tuple[list[str], str]:
        arguments, text = json.loads(record.read_text())
        return arguments, text

    seen.install = install  # type: ignore[attr-defined]
    return seen


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that TRITON_DIST_DEVICE_LIBRARY names, with the file for vector kernels of A2 and A3."""
    directory = tmp_path / "device"
    directory.mkdir()
    text = "".join(f"_mlir_ciface_{symbol}" for symbol in [*SYMBOLS.split(), CONSUME])
    (directory / "shmem.aiv.c220.bc").write_bytes(b"BC\xc0\xde" + text.encode())
    (directory / "shmem.mix.aiv.c220.bc").write_bytes(b"BC\xc0\xde" + text.encode())
    (directory / "shmem.aiv.c310.bc").write_bytes(b"BC\xc0\xde" + text.encode())
    monkeypatch.setenv("TRITON_DIST_DEVICE_LIBRARY", str(directory))
    return directory


def build(kernel: Any, newer: bool = False) -> tuple[list[str], dict[str, Any], bytes]:
    """Runs all stages as Triton does; gives their names, the metadata and the binary."""
    target = GPUTarget("npu", SOC, 0)
    backend = wrapped(newer_backend.AscendBackend if newer else stock.AscendBackend)(target)
    options = stock.AscendBackend(target).parse_options({})
    extra = {"bitcodes": None} if newer else {}
    metadata: dict[str, Any] = {"hash": "0", "target": target, **options.__dict__, **extra}
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, *(["triton"] if newer else []))
    codegen = backend.get_codegen_implementation(*([options] if newer else []))
    context = ir.context()
    ir.load_dialects(context)
    types = {name: text for name, text in kernel.fn.__annotations__.items() if isinstance(text, str)}
    types = {name: text.strip("'\"") for name, text in types.items() if "constexpr" not in text}
    source = ASTSource(kernel, types, {"BLOCK": 64} if "BLOCK" in kernel.arg_names else {})
    result: Any = source.make_ir(options, codegen, {}, context)
    for stage in stages.values():
        result = stage(result, metadata)
    return list(stages), metadata, result


def test_the_stage_of_3_2_0_stands_before_the_binary(compiler: Any, library: Path) -> None:
    names, metadata, binary = build(sample_kernels.signals_after_data)
    assert names == ["ttir", "ttadapter", STAGE, "npubin"]
    assert binary == b"binary"
    arguments, text = compiler()
    assert 'symbol = "aclshmem_int64_p"' in text
    assert "tt.extern_elementwise" not in text
    assert f"--link-aicore-bitcode={library / 'shmem.aiv.c220.bc'}" in arguments
    # What the launcher needs is found in the lowered IR as in the adapter's.
    assert metadata["kernel_name"] == "signals_after_data"
    assert metadata["name"] == "signals_after_data aiv"
    assert metadata["tensor_kinds"] == [2, 2]  # both are read and written; the signal is neither loaded nor stored
    json.dumps({name: value for name, value in metadata.items() if name != "target"})


def test_the_stage_of_a_later_release_stands_before_the_binary(compiler: Any, library: Path) -> None:
    names, metadata, binary = build(sample_kernels.signals_after_data, newer=True)
    assert names == ["ttir", "ttadapter", "mlirbc", "bcmlir", STAGE, "npubin"]
    assert binary == b"binary"
    arguments, text = compiler()
    assert 'symbol = "aclshmem_int64_p"' in text
    # It links what it is given as an option; nothing is added to its command line besides.
    assert metadata["bitcodes"] == [str(library / "shmem.aiv.c220.bc")]
    assert [a for a in arguments if "bitcode" in a] == [f"--link-aicore-bitcode={library / 'shmem.aiv.c220.bc'}"]


@pytest.mark.parametrize("newer", [False, True])
def test_a_kernel_without_distributed_ops_is_compiled_as_before(
    compiler: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, newer: bool
) -> None:
    monkeypatch.setenv("TRITON_DIST_DEVICE_LIBRARY", str(tmp_path / "nothing"))
    build(sample_kernels.tuned.fn, newer)
    arguments, text = compiler()
    assert not any("bitcode" in argument for argument in arguments)
    assert "aclshmem" not in text


def test_a_missing_device_library_says_where_it_was_looked_for(
    compiler: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRITON_DIST_DEVICE_LIBRARY", str(tmp_path / "nothing"))
    with pytest.raises(KernelCompileError) as caught:
        build(sample_kernels.signals_after_data)
    text = str(caught.value)
    for part in ("aclshmem_int64_p", str(tmp_path / "nothing"), "SHMEM_BUILD_TEMPLATE", "TRITON_DIST_DEVICE_LIBRARY"):
        assert part in text


def test_the_installed_library_is_found_without_a_variable(
    compiler: Any, library: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = tmp_path / "aclshmem"
    home.mkdir()
    library.rename(home / "lib")
    monkeypatch.delenv("TRITON_DIST_DEVICE_LIBRARY")
    monkeypatch.setenv("SHMEM_HOME_PATH", str(home))
    build(sample_kernels.signals_after_data)
    assert f"--link-aicore-bitcode={home / 'lib' / 'shmem.aiv.c220.bc'}" in compiler()[0]


def test_a_library_in_the_compiler_s_own_files_is_not_linked_again(compiler: Any, library: Path) -> None:
    (library / "shmem.aiv.c220.bc").rename(library / "meta_op.aiv.c220.bc")
    build(sample_kernels.signals_after_data)
    assert not any("bitcode" in argument for argument in compiler()[0])


def test_a_compiler_that_cannot_link_is_refused(compiler: Any, library: Path) -> None:
    compiler.install()
    tools._help.cache_clear()
    with pytest.raises(KernelCompileError, match="has no --link-aicore-bitcode, which distributed kernels need"):
        build(sample_kernels.signals_after_data)


def test_the_binary_depends_on_the_device_library(compiler: Any, library: Path) -> None:
    backend = wrapped(stock.AscendBackend)(GPUTarget("npu", SOC, 0))
    before = backend.hash()
    assert before == backend.hash()
    (library / "shmem.aiv.c220.bc").write_bytes(b"BC\xc0\xde another")
    assert backend.hash() != before


_ON_HARDWARE = """
import triton
from triton.backends import backends
found = backends["ascend"]
names = [base.__name__ for base in found.compiler.__bases__]
print(found.compiler.lowers_distributed_ops, *names, found.driver.__name__)
"""


def test_on_hardware_the_backend_is_ours_and_the_driver_triton_ascend_s(tmp_path: Path) -> None:
    environ = env.child_environ(TRITON_DIST_BACKEND="ascend", TRITON_CACHE_DIR=tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", _ON_HARDWARE], env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.split() == ["True", "AscendBackend", "NPUDriver"], done.stderr
