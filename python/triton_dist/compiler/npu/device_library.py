"""The device library: bitcode with the bodies of the symbols that distributed ops become.

It is made on a host that has CANN, for each family of SoCs in four variants of a core: alone or in a mixed kernel, cube
(aic) or vector (aiv). AscendNPU-IR puts it into its own meta_op files where it is built with its shmem template, and
then there is nothing to link; else it lies in files of its own, `<name>.aiv.c220.bc` and so on.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path

from triton_dist import env
from triton_dist.compiler.errors import KernelCompileError
from triton_dist.compiler.npu import tools
from triton_dist.compiler.stage_cache import digest
from triton_dist.runtime import native

FLAG = "link-aicore-bitcode"
_MARK = b"_mlir_ciface_"
_VARIANTS = {"aiv": ("aiv",), "aic": ("aic",), "mix": ("mix.aic", "mix.aiv")}


def find(soc: str, mix_mode: str, symbols: Sequence[str]) -> list[Path]:
    """The bitcode files to link into a kernel; none where the compiler's own files have the symbols.

    Args:
        soc: name of the SoC.
        mix_mode: `aiv`, `aic` or `mix`: the cores that the kernel runs on.
        symbols: what the kernel calls.

    Raises:
        KernelCompileError: a symbol is nowhere; the text says where it was looked for and how to get it.
    """
    if not symbols:
        return []
    named = env.TRITON_DIST_DEVICE_LIBRARY.get()
    places = _searched(named)
    files = list(_files(places))
    chosen: dict[Path, None] = {}
    for variant in _VARIANTS[mix_mode]:
        ending = f".{variant}.{_architecture(soc)}.bc"
        # A file that was named by itself is one that fits, whatever its name says.
        fitting = [file for file in files if file == named or _is_for(file, variant, soc)]
        defining = {symbol: next((f for f in fitting if _defines(f, symbol)), None) for symbol in symbols}
        missing = [symbol for symbol, file in defining.items() if file is None]
        if missing:
            raise KernelCompileError(_missing(missing, soc, f"*{ending}", places))
        chosen.update({file: None for file in defining.values() if file and not file.name.startswith("meta_op.")})
    return [file.resolve() for file in chosen]


def _is_for(file: Path, variant: str, soc: str) -> bool:
    if file.parent == _own():
        # What the template lacks, it lacks on Ascend950 alone: these files name the core, and are for that family.
        return tools.is_a5(soc) and file.name.endswith(f".{variant.removeprefix('mix.')}.bc")
    name = file.name.removesuffix(f".{variant}.{_architecture(soc)}.bc")
    return name != file.name and not name.endswith(".mix")


def _own() -> Path:
    return native.install_directory() / "device"


def _missing(symbols: Sequence[str], soc: str, pattern: str, places: Sequence[Path]) -> str:
    looked = ", ".join(map(str, places)) or "no place: neither aclshmem, ascendnpu-ir nor CANN is installed"
    return (
        f"no device library for {soc} ({pattern}) has {', '.join(symbols)}; looked in {looked}. Build AscendNPU-IR "
        "with its shmem template (SHMEM_BUILD_TEMPLATE=ON) on a host with CANN, or name the bitcode file, "
        "or its directory, by TRITON_DIST_DEVICE_LIBRARY"
    )


def check_compiler() -> None:
    """Refuse a compiler that cannot link bitcode.

    Raises:
        KernelCompileError: it is too old to have the flag.
    """
    if not tools.knows_flag(FLAG):
        raise KernelCompileError(
            f"{tools.compiler()} has no --{FLAG}, which distributed kernels need: install CANN 9.0 or later, or "
            "ascendnpu-ir 1.2.0 or later"
        )


def has(symbol: str, file: Path | None = None) -> bool:
    """Whether the symbol is in `file`, or else in any device library that is installed, of whatever variant."""
    if file is not None:
        return file.is_file() and _defines(file, symbol)
    named = env.TRITON_DIST_DEVICE_LIBRARY.get()
    return any(_defines(f, symbol) for f in _files(_searched(named)))


def fingerprint() -> str:
    """A digest of which files there are, as they are now."""
    named = env.TRITON_DIST_DEVICE_LIBRARY.get()
    files = list(_files(_searched(named)))
    return digest(f"{file} {file.stat().st_mtime_ns} {file.stat().st_size}" for file in files)


def _architecture(soc: str) -> str:
    return "c310" if tools.is_a5(soc) else "c220"


def _searched(named: Path | None) -> list[Path]:
    """Where to look: where the user says, and always among our own."""
    return list(_places()) if named is None else [named, *filter(Path.is_dir, [_own()])]


def _places() -> Iterator[Path]:
    """Directories that may have the library: our own wrappers, aclshmem's, AscendNPU-IR's, CANN's."""
    candidates = [_own()]
    if (home := env.SHMEM_HOME_PATH.get()) is not None:
        candidates += [home / "lib", home / "shmem" / "lib"]
    if (wheel := tools.wheel_directory()) is not None:
        candidates.append(wheel / "lib")
    for cann in (env.ASCEND_HOME_PATH.get(), env.ASCEND_TOOLKIT_HOME.get()):
        if cann is not None:
            candidates += [cann / "lib64", cann / "tools" / "bishengir" / "lib", cann / "shmem" / "lib"]
    with contextlib.suppress(KernelCompileError):  # the compiler's absence is told where it is run
        candidates.append(tools.compiler().parent.parent / "lib")
    seen: set[Path] = set()
    for candidate in candidates:
        if candidate not in seen and candidate.is_dir():
            seen.add(candidate)
            yield candidate


def _files(places: Sequence[Path]) -> Iterator[Path]:
    for place in places:
        if place.is_dir():
            yield from sorted(place.glob("*.bc"))
        elif place.is_file():
            yield place


@functools.lru_cache(maxsize=64)
def _bytes(file: Path, changed: int) -> bytes:
    return file.read_bytes()


def _defines(file: Path, symbol: str) -> bool:
    """Whether the file has the symbol, or a longer one that begins like it.

    The string table of bitcode holds the names as they are, one behind the other: where one ends is not seen.
    """
    mark = b"" if symbol.startswith("tdist_") else _MARK
    return mark + symbol.encode() in _bytes(file, file.stat().st_mtime_ns)
