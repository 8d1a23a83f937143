"""The NPU's compiler: the last step, hivmc, needs bitcode that some builds of AscendNPU-IR leave out."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from triton_dist import env
from triton_dist.commands.doctor.finding import Finding, Level, fail, ok, warn
from triton_dist.commands.doctor.situation import Situation

_COMPILER, _LAST_STEP, _BITCODE = "bishengir-compile", "hivmc", "meta_op.*.bc"
# What bishengir-compile 1.2.0 must read in the first line before it hands bitcode on; it gives none to hivmc 0.1.0.
_VERSION = re.compile(r"hivmc (?!0\.1\.0 )\d+\.\d+\.\d+ \([0-9a-fA-F]{6,40} \d{4}-\d\d-\d\d\)")
_SECONDS = 5.0


def look(situation: Situation) -> Iterator[Finding]:
    """bishengir-compile and hivmc, and the bitcode beside them; NPUs alone need them."""
    named = env.TRITON_NPU_COMPILER_PATH.text()
    places = f"{named}:{named}/bin" if named else None
    compiler, last = (shutil.which(name, path=places) or shutil.which(name) for name in (_COMPILER, _LAST_STEP))
    if last is not None:
        prefix = Path(last).resolve().parents[1]
        if not any(prefix.rglob(_BITCODE)):
            must: Level = "FAIL" if situation.on_npus else "warn"
            yield Finding(
                must,
                f"{last} is there, and no {_BITCODE} under {prefix}",
                "every kernel fails with: Failed to compile BiShengLIR to binary",
                "build AscendNPU-IR with -t, which makes its bitcode, or use CANN's own compiler",
            )
            return
        yield from _links_nothing(last)
    if not situation.on_npus:
        return
    absent = [name for name, path in ((_COMPILER, compiler), (_LAST_STEP, last)) if path is None]
    if absent:
        yield fail(
            f"no {' and no '.join(absent)} on PATH",
            "kernels cannot be compiled for NPUs",
            "source CANN's set_env.sh, or name its directory in TRITON_NPU_COMPILER_PATH",
        )
    else:
        yield ok(f"{_COMPILER} at {compiler}, {_LAST_STEP} at {last}")


def _links_nothing(last: str) -> Iterator[Finding]:
    """A hivmc that gets no device library, and no word of that: bishengir-compile asks for its version, and decides."""
    try:
        done = subprocess.run(
            [last, "--version"], check=False, capture_output=True, text=True, timeout=_SECONDS, stdin=subprocess.DEVNULL
        )
        said = next(iter(done.stdout.splitlines()), "")
    except (OSError, subprocess.TimeoutExpired) as error:
        said = " ".join(str(error).split())
    if not _VERSION.fullmatch(said):
        yield warn(
            f"{last} --version says {said!r:.120}, which {_COMPILER} takes for one that links no device library",
            "kernels with distributed operations are made without the functions that they call",
            "use a later CANN, or an AscendNPU-IR that was built with its shmem template (SHMEM_BUILD_TEMPLATE=ON)",
        )
