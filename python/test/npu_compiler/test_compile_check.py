"""`nox -s compile-check`: the list of the project's kernels is whole, and its rows are what it promises."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ci.compile_check import kernels
from triton_dist.compiler.npu import tools


def test_each_kernel_is_in_the_list_or_left_out_for_a_reason() -> None:
    listing = kernels.read()
    listed = {f"{row.file}::{row.name}" for row in listing.kernels}
    written = list(kernels.written(listing))
    assert len(written) > 50
    unlisted = [
        name
        for name in written
        if name not in listed and name not in listing.left_out and name.split("::")[0] not in listing.left_out
    ]
    assert unlisted == [], f"add to ci/compile_check/kernels.toml: {unlisted}"
    assert listed <= set(written)
    assert all(listing.left_out.values())


def test_a_signature_for_one_soc_wins_there() -> None:
    row = kernels.Kernel("a/b.py", "k", ["x=*fp16, BLOCK=64", "x=*fp32, BLOCK=64"], instead={"Ascend950": "BLOCK=32"})
    assert list(row.signatures_for("Ascend910B3")) == [
        ("b.py::k", "x=*fp16, BLOCK=64"),
        ("b.py::k[x=*fp32]", "x=*fp32, BLOCK=64"),
    ]
    assert [text for _, text in row.signatures_for("Ascend950PR_9589")] == [
        "x=*fp16, BLOCK=64, BLOCK=32",
        "x=*fp32, BLOCK=64, BLOCK=32",
    ]


@pytest.mark.skipif(tools.wheel_directory() is None, reason="ascendnpu-ir is not installed")
def test_the_rows_of_the_seed_s_kernels(tmp_path: Path) -> None:
    report = tmp_path / "rows.json"
    command = [sys.executable, "-m", "ci.compile_check", "-k", "distributed_kernels", "--target", "Ascend910_9392"]
    done = subprocess.run(
        [*command, "--json", str(report)], cwd=kernels.ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(report.read_text())
    assert {row["kernel"].split("[")[0] for row in rows} == {
        "distributed_kernels.py::notify_kernel",
        "distributed_kernels.py::wait_kernel",
    }
    for row in rows:
        assert {"kernel", "target", "state", "ub_used", "ub_available", "symbols", "seconds", "message"} <= row.keys()
        assert (row["state"], row["target"], row["message"]) == ("ok", "Ascend910_9392", "")
    symbols = {symbol for row in rows for symbol in row["symbols"]}
    assert {"aclshmem_int64_p", "aclshmem_wait_int64", "aclshmem_int32_p", "aclshmem_wait_int32"} <= symbols
