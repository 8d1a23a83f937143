"""A launch as on a host with NPUs, up to the border of CANN's compiler, which notes what it gets."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from triton_dist import env
from triton_dist.compiler.npu import tools

from .test_backend import CONSUME, SYMBOLS

HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(tools.wheel_directory() is None, reason="ascendnpu-ir is not installed")

# bishengir-compile asks for the version, and hands the library on to one that it knows.
_HIVMC = """\
#!{python}
import json, pathlib, sys
if "--version" in sys.argv:
    print("hivmc 1.2.0 (0123abc 2026-01-01)")
    sys.exit()
text = pathlib.Path(sys.argv[1]).read_text()
pathlib.Path({record!r}).write_text(json.dumps([sys.argv[1:], text]))
pathlib.Path(sys.argv[sys.argv.index("-o") + 1] + ".o").write_bytes(b"made by hivmc")
"""


def test_a_launch_gets_to_the_border_of_cann(tmp_path: Path) -> None:
    """Real backend, our stage, real open compiler; then CANN's is run, and its binary loaded and launched."""
    record, library, directory = tmp_path / "record.json", tmp_path / "shmem.aiv.c220.bc", tmp_path / "bin"
    directory.mkdir()
    (directory / "hivmc").write_text(_HIVMC.format(python=sys.executable, record=str(record)))
    (directory / "hivmc").chmod(0o755)
    symbols = [*SYMBOLS.split(), CONSUME]
    library.write_bytes(b"BC\xc0\xde" + "".join(f"_mlir_ciface_{symbol}" for symbol in symbols).encode())
    path = os.pathsep.join([str(directory), env.child_environ()["PATH"], str(tools.compiler().parent)])
    environ = env.child_environ(
        PATH=path,
        TRITON_DIST_BACKEND="ascend",
        TRITON_DIST_DEVICE_LIBRARY=library,
        TRITON_CACHE_DIR=tmp_path / "cache",
        TRITON_ASCEND_ARCH=None,
    )
    program = [sys.executable, str(HERE / "launch_on_stand_ins.py"), str(tmp_path)]
    done = subprocess.run(program, env=environ, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    noted = json.loads(done.stdout.splitlines()[-1])

    arguments, text = json.loads(record.read_text())
    assert f"--link-aicore-bitcode={library}" in arguments
    for symbol in symbols:
        assert re.search(rf"call @(_mlir_ciface_)?{symbol}\(", text), symbol
    # The data is complete before the signal goes.
    before, _, _ = text.partition("call @aclshmem_int64_p(")
    assert "pipe_barrier" in before.partition("call @store_ubuf_to_gm")[2]
    assert "tt.extern_elementwise" not in text
    assert "hivm.hir.custom" not in text

    assert noted["loaded"] == ["signal_after_data aiv", "made by hivmc"]
    grid, stream, function, addresses = noted["launched"]
    assert (grid, stream, function) == ([3, 1, 1], 0x5000, 0xF000)
    # Objects in symmetric memory, at their own places in it, also at one that is not aligned to 16 bytes.
    assert addresses[:4] == [4096, 8192 + 3 * 64, 16, 1024 + 8]
    assert noted["wrapper takes pointers by data_ptr"]
    assert noted["arguments of the device function"] == 4
