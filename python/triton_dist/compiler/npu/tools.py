"""Where the NPU's compiler is, and what the installed release knows."""

from __future__ import annotations

import functools
import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

from triton_dist import env
from triton_dist.compiler.errors import KernelCompileError

COMPILER = "bishengir-compile"
_FLAG = re.compile(r"^\s+--?([\w-]+)", re.MULTILINE)
_TARGET = re.compile(r"^\s+=(Ascend\w[\w-]*)", re.MULTILINE)


def wheel_directory() -> Path | None:
    """The installed package `ascendnpuir`, which has the open part of the compiler; None where it is not installed."""
    spec = importlib.util.find_spec("ascendnpuir")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def compiler() -> Path:
    """The compiler that triton-ascend would take: that of PATH, else the one in the wheel.

    Raises:
        KernelCompileError: there is none; the text says where it was looked for and how to get it.
    """
    found = shutil.which(COMPILER)
    if found is not None:
        return Path(found)
    directory = wheel_directory()
    if directory is not None and (directory / "bin" / COMPILER).is_file():
        return directory / "bin" / COMPILER
    raise KernelCompileError(
        f"{COMPILER} is missing: it is not on PATH and the package ascendnpu-ir is not installed. "
        "Source CANN's set_env.sh, or pip install 'triton-dist[compile]'"
    )


def put_on_path() -> None:
    """Let triton-ascend, which looks on PATH alone, find the compiler of the wheel behind whatever PATH has."""
    directory = compiler().parent
    if shutil.which(COMPILER) is None:
        path = env.child_environ().get("PATH", "")
        env.apply({"PATH": f"{path}:{directory}" if path else str(directory)})


@functools.cache
def _help(tool: Path) -> str:
    return subprocess.run(
        [tool, "--help-hidden"], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    ).stdout


def targets() -> list[str]:
    """The SoCs that the compiler makes code for, by the names that it knows them by."""
    return _TARGET.findall(_help(compiler()))


def knows_flag(name: str, tool: Path | None = None) -> bool:
    """Whether the compiler (or another `tool`) has the flag `--<name>`."""
    return name in _FLAG.findall(_help(tool or compiler()))


@functools.cache
def version() -> str:
    """What the compiler calls itself, and its size: what a result that is kept depends on."""
    tool = compiler()
    text = subprocess.run(
        [tool, "--version"], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    ).stdout
    return f"{' '.join(text.split())} {tool.stat().st_size}"


def last_step(soc: str) -> str | None:
    """Path of the closed last step for the SoC, which comes with CANN; None where it is not there."""
    return shutil.which("hivmc-a5" if is_a5(soc) else "hivmc")


def is_a5(soc: str) -> bool:
    """Whether the SoC is of the Ascend 950 family, which has tools of its own."""
    return soc.startswith(("Ascend950", "Ascend910_95"))
