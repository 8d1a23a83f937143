"""The tools that make a native object of linalg IR, and the command lines that run them."""

from __future__ import annotations

import functools
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from triton_dist import env
from triton_dist.compiler import scratch
from triton_dist.compiler.errors import KernelCompileError
from triton_dist.compiler.stage_cache import digest
from triton_dist.compiler.stage_settings import Flags
from triton_dist.runtime import native


def tool(name: str) -> Path:
    """Path of one of our tools. Raises KernelCompileError where it is not built."""
    path = native.install_directory() / "bin" / name
    if not path.exists():
        raise KernelCompileError(f"{name} is missing at {path}: build it with nox -s build")
    return path


def run(command: Sequence[str | Path], what: str, *, temporary: Path, reporting: bool = False) -> None:
    """Run one tool; raise KernelCompileError with its own diagnostics when it fails.

    What it prints goes to standard error when it is `reporting`, else nowhere.
    """
    result = subprocess.run(
        command,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        # A tool that is killed leaves its own temporary files.
        env=env.child_environ(TMPDIR=temporary),
        check=False,
    )
    if result.returncode < 0:
        raise KernelCompileError(f"{what}: {command[0]} was ended by signal {-result.returncode}\n{result.stderr}")
    if result.returncode:
        raise KernelCompileError(f"{what} failed:\n{result.stderr.strip()}")
    if reporting:
        print(result.stderr, file=sys.stderr, end="", flush=True)


_GENERIC_FLAGS = ("--mlir-print-op-generic", "--mlir-print-debuginfo", "--allow-unregistered-dialect")


def to_generic(linalg: str, adapter: Path) -> str:
    """Print `linalg` in MLIR's generic form, the only one in which a tool can read dialects that it does not know."""
    with scratch.directory() as directory:
        source, result = Path(directory, "in.mlir"), Path(directory, "out.mlir")
        source.write_text(linalg)
        run(
            [adapter, source, *_GENERIC_FLAGS, "-o", result],
            "reading the linalg IR",
            temporary=directory,
        )
        return result.read_text()


def _leave_reproducer(stage: str, command: Sequence[str | Path], source: Path) -> None:
    """Write the stage's input, with the command that runs the stage, where TRITON_REPRODUCER_PATH says."""
    path = env.TRITON_REPRODUCER_PATH.get()
    if path is not None:
        copy = path.with_name(f"{path.name}.{stage}.mlir")
        line = shlex.join(str(copy if word == source else word) for word in command)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(f"// {line}\n{source.read_text()}")


def lower_to_llvm(generic: str, flags: Flags) -> str:
    """Lower generic linalg IR with our extern calls to LLVM dialect that calls the simulator's runtime.

    `flags` are those of tdist-opt.
    """
    with scratch.directory() as directory:
        source, result = Path(directory, "in.mlir"), Path(directory, "out.mlir")
        source.write_text(generic)
        command: list[str | Path] = [
            tool("tdist-opt"),
            source,
            "--allow-unregistered-dialect",
            *flags.result,
            *flags.reports,
        ]
        _leave_reproducer("llvmdialect", command, source)
        run(
            [*command, "-o", result],
            "lowering the kernel for simulated NPUs",
            temporary=directory,
            reporting=bool(flags.reports),
        )
        return result.read_text()


def generate_library(llvm_dialect: str, flags: Flags, extern_libraries: Sequence[str]) -> bytes:
    """Compile LLVM dialect to a shared object. Every symbol must be known to the runtime or an extern library.

    `flags` are those of tdist-codegen.
    """
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise KernelCompileError("no C compiler found to link the kernel: install gcc (cc, gcc or clang on PATH)")
    with scratch.directory() as directory:
        source, obj, result = (Path(directory, name) for name in ("in.mlir", "kernel.o", "kernel.so"))
        source.write_text(llvm_dialect)
        command: list[str | Path] = [tool("tdist-codegen"), source, *flags.result, *flags.reports]
        _leave_reproducer("so", command, source)
        run([*command, "-o", obj], "generating code", temporary=directory, reporting=bool(flags.reports))
        libraries: list[str | Path] = [native.library_path()]
        for library in extern_libraries:
            libraries += [library, f"-Wl,-rpath,{Path(library).parent}"]
        run(
            [compiler, "-shared", "-o", result, obj, *libraries, "-lm", "-Wl,-z,defs"],
            "linking the kernel",
            temporary=directory,
        )
        return result.read_bytes()


@functools.cache
def fingerprint() -> str:
    """A digest of all that decides which code comes out: both tools, the runtime they call, and this machine's CPU."""
    files = [tool("tdist-opt"), tool("tdist-codegen"), native.library_path()]
    return digest([file.read_bytes() for file in files] + [_cpu()])


def _cpu() -> str:
    """What code generation may depend on: the architecture and the CPU's feature flags."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("flags", "Features")):
            return f"{platform.machine()} {line}"
    return platform.machine()
