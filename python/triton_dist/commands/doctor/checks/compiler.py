"""The NPU's compiler: the last step, hivmc, needs bitcode that some builds of AscendNPU-IR leave out."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from triton_dist import env
from triton_dist.commands.doctor.finding import Finding, Level, fail, ok
from triton_dist.commands.doctor.situation import Situation

_COMPILER, _LAST_STEP, _BITCODE = "bishengir-compile", "hivmc", "meta_op.*.bc"


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
