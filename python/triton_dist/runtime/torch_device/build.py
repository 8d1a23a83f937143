"""Builds the C++ part of the torch device `npu` against the torch that is installed, once, into the cache.

torch's C++ interface is that of one release, so the library cannot come ready-made. It is kept under

    <TRITON_DIST_CACHE_DIR>/torch-device/<hash of sources, torch and flags>/<hash of the compiler>.so

and found there again in well under a millisecond. `python -m triton_dist.runtime.torch_device.build` builds it ahead of
the first import and prints where it is.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import triton_dist
from triton_dist import env
from triton_dist.runtime.torch_device.errors import TorchDeviceError

TESTED_TORCH = ("2.13",)
"""Releases of torch that the device is tested with."""

_COMPILE_SECONDS = 600.0
_FLAGS = ("-std=c++20", "-O2", "-fPIC", "-DAT_PER_OPERATOR_HEADERS=1")


@dataclass(frozen=True)
class Torch:
    """What of the installed torch a build depends on."""

    root: Path
    version: str
    git_version: str


def library() -> Path:
    """Path of the library for the installed torch; builds it when the cache has none.

    Raises:
        TorchDeviceError: torch is one that the device is not tested with, there is no compiler, the sources do not
            compile, or the cache cannot be written to.
    """
    torch = _installed_torch()
    sources = _sources()
    directory = env.TRITON_DIST_CACHE_DIR.get() / "torch-device" / _key(torch, sources)
    compiler = shutil.which("c++")
    if compiler is None:
        # Any compiler's library will do: an image may have been built where there was one.
        for built in sorted(directory.glob("*.so")):
            return built
        raise TorchDeviceError(
            f"no C++ compiler: c++ is not on PATH, and {directory} holds no library that was built before; "
            "install one (Debian: apt-get install g++)"
        )
    path = directory / f"{_compiler_key(compiler)}.so"
    if not path.exists():
        _build(torch, sources, compiler, path)
    return path


def _installed_torch() -> Torch:
    # Without importing it: that takes longer than all the rest here, and would ask for the library itself.
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise TorchDeviceError("torch is not installed: install one of " + ", ".join(TESTED_TORCH))
    root = Path(spec.origin).parent
    names = runpy.run_path(str(root / "version.py"))
    torch = Torch(root=root, version=str(names["__version__"]), git_version=str(names["git_version"]))
    if ".".join(torch.version.split(".")[:2]) not in TESTED_TORCH:
        raise TorchDeviceError(
            f"torch {torch.version} is not one that simulated NPUs are tested with ({', '.join(TESTED_TORCH)}): "
            "install one of these, or set TRITON_DIST_BACKEND=ascend to do without simulated NPUs"
        )
    return torch


def _sources() -> list[Path]:
    package = Path(triton_dist.__file__).parent
    # An editable install runs from a checkout; a wheel brings the sources along.
    for directory in (package.parents[1] / "csrc" / "torch", package / "csrc_torch"):
        sources = sorted([*directory.glob("*.cpp"), *directory.glob("*.h")])
        if sources:
            return sources
    raise TorchDeviceError(
        f"the C++ sources of the torch device are missing: neither {package.parents[1] / 'csrc' / 'torch'} nor "
        f"{package / 'csrc_torch'} has them; install triton-dist again"
    )


def _key(torch: Torch, sources: list[Path]) -> str:
    digest = hashlib.sha256()
    for part in (torch.version, torch.git_version, str(torch.root), sys.version, *_FLAGS):
        digest.update(part.encode() + b"\0")
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def _compiler_key(compiler: str) -> str:
    # Asking the compiler for its version would cost more than all the rest of a start.
    real = Path(compiler).resolve()
    status = real.stat()
    return hashlib.sha256(f"{real}\0{status.st_size}\0{status.st_mtime_ns}".encode()).hexdigest()[:16]


def _build(torch: Torch, sources: list[Path], compiler: str, path: Path) -> None:
    import filelock

    directory = path.parent
    try:
        directory.mkdir(parents=True, exist_ok=True)
        # Whoever holds the lock compiles for a bounded time, and the system frees it when that process ends.
        with filelock.FileLock(directory / "lock", timeout=_COMPILE_SECONDS + 60):
            if path.exists():
                return
            # Left by a build that was killed: only the holder of the lock has one here.
            for stale in directory.glob("build-*"):
                shutil.rmtree(stale, ignore_errors=True)
            with tempfile.TemporaryDirectory(prefix="build-", dir=directory) as scratch:
                built = Path(scratch) / "library.so"
                _compile(torch, sources, compiler, built)
                built.replace(path)
    except filelock.Timeout:
        raise TorchDeviceError(f"another process has been building {path} for too long; end it and try again") from None
    except OSError as error:
        raise TorchDeviceError(
            f"cannot build the torch device into {directory} ({error.strerror or error}): make it writable, or name "
            "another directory in TRITON_DIST_CACHE_DIR"
        ) from error


def _compiling(torch: Torch, compiler: str) -> list[str]:
    """The compiler with all flags but those for the linker."""
    return [compiler, *_FLAGS, f"-isystem{torch.root / 'include'}", f"-isystem{sysconfig.get_path('include')}"]


def compile_commands() -> list[dict[str, str | list[str]]]:
    """How clang's tools are to read each of the sources, in the form of their compile_commands.json.

    Raises:
        TorchDeviceError: torch is one that the device is not tested with, or the sources are missing.
    """
    command = _compiling(_installed_torch(), "c++")
    return [
        {"directory": str(source.parent), "file": str(source), "arguments": [*command, "-c", str(source)]}
        for source in _sources()
        if source.suffix == ".cpp"
    ]


def _compile(torch: Torch, sources: list[Path], compiler: str, output: Path) -> None:
    # One translation unit: torch's headers take most of the time, and are read once.
    unit = output.with_name("unit.cpp")
    unit.write_text("".join(f'#include "{source}"\n' for source in sources if source.suffix == ".cpp"))
    command = [
        *_compiling(torch, compiler),
        "-shared",
        f"-L{torch.root / 'lib'}",
        str(unit),
        "-o",
        str(output),
        "-ltorch_python",
        "-ltorch_cpu",
        "-lc10",
    ]
    print(
        f"triton-dist: building the device npu for torch {torch.version}, once; takes some 15 seconds ...",
        file=sys.stderr,
        flush=True,
    )
    start = time.monotonic()
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_COMPILE_SECONDS)
    except subprocess.CalledProcessError as error:
        lines = [line for line in error.stderr.splitlines() if "error" in line] or error.stderr.splitlines()
        first = lines[0] if lines else f"exit status {error.returncode}"
        raise TorchDeviceError(
            f"the torch device does not compile against torch {torch.version} with {compiler}: {first}"
        ) from None
    except subprocess.TimeoutExpired:
        raise TorchDeviceError(f"{compiler} took more than {_COMPILE_SECONDS:.0f} s for the torch device") from None
    print(f"triton-dist: built in {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)


def main() -> int:
    """Builds the library and prints its path; an error is one line and exit status 1.

    `--compile-commands FILE` writes these instead.
    """
    try:
        if sys.argv[1:2] == ["--compile-commands"]:
            Path(sys.argv[2]).write_text(json.dumps(compile_commands(), indent=1) + "\n")
        else:
            print(os.fspath(library()))
    except TorchDeviceError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
