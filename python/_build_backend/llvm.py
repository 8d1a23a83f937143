"""Which LLVM the build uses, and whether it is the right one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from _build_backend.checkout import env, versions
from _build_backend.errors import BuildSettingsError


@dataclass(frozen=True)
class LLVM:
    """An installed LLVM with MLIR.

    Attributes:
        prefix: where it is installed; the tools are in `bin` under it.
        version: its full version, such as 19.1.7.
    """

    prefix: Path
    version: str

    def tool(self, name: str) -> Path | None:
        """The path of one of its programs, or None when it was not installed with the rest."""
        path = self.prefix / "bin" / name
        return path if path.is_file() else None


def required_version() -> str:
    """Major and minor version of the LLVM to build against, such as 19.1."""
    major, minor, _ = versions()["toolchain"]["llvm"].split(".")
    return f"{major}.{minor}"


def distribution_prefix() -> Path:
    """Where Debian and Ubuntu install the required LLVM."""
    return Path(f"/usr/lib/llvm-{required_version().split('.')[0]}")


def locate() -> LLVM:
    """The LLVM at LLVM_SYSPATH, else the distribution's.

    Raises:
        BuildSettingsError: it is missing, incomplete or another version.
    """
    chosen = env.LLVM_SYSPATH.get()
    prefix = chosen or distribution_prefix()
    needed = required_version()
    named = f"LLVM_SYSPATH={prefix}" if chosen else f"LLVM at {prefix}"
    mend = (
        f"set it to a prefix of LLVM and MLIR {needed}, or unset it to use the distribution's"
        if chosen
        else "run ci/bootstrap as root, or set LLVM_SYSPATH to a prefix of LLVM and MLIR " + needed
    )
    if not prefix.is_dir():
        raise BuildSettingsError(f"{named}: no such directory; {mend}")
    config = prefix / "lib" / "cmake" / "llvm" / "LLVMConfig.cmake"
    found = re.search(r"^set\(LLVM_PACKAGE_VERSION (\S+)\)", _read(config), re.MULTILINE)
    if not found:
        raise BuildSettingsError(f"{named}: no LLVM with its CMake files there ({config} is missing); {mend}")
    version = found.group(1)
    if version.split(".")[:2] != needed.split("."):
        raise BuildSettingsError(f"{named}: that is LLVM {version}, and {needed} is needed; {mend}")
    mlir = prefix / "lib" / "cmake" / "mlir" / "MLIRConfig.cmake"
    if not mlir.is_file():
        raise BuildSettingsError(f"{named}: LLVM {version} without MLIR ({mlir} is missing); {mend}")
    return LLVM(prefix, version)


def _read(path: Path) -> str:
    return path.read_text() if path.is_file() else ""
