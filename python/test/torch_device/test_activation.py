"""Activation without edits to user code: whatever is imported first, and whatever else is installed.

Each case is a fresh interpreter, as activation happens once in a process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from triton_dist import env
from triton_dist.runtime import backend

USE = "import torch; assert torch.ones(2, device='npu:1').npu().sum().item() == 2; "
DRIVER = "from triton.runtime.driver import driver; print(type(driver.active).__name__)"


@pytest.fixture(autouse=True)
def no_real_npus() -> None:
    if backend.has_npus():
        pytest.skip("this host has real NPUs, which `auto` takes")


@pytest.mark.parametrize(
    ("first", "chosen"),
    [
        ("import torch", "sim"),
        ("import torch", "auto"),
        ("import torch", None),
        ("import torch_npu", "sim"),
        ("import torch_npu", "auto"),
        ("import shmem", "sim"),
        ("import shmem", "auto"),
        ("import triton", "sim"),
        ("import triton.language", "auto"),
        ("import triton_dist.language", "sim"),
        ("import triton_dist.language", "auto"),
        ("from triton.language.extra.cann.extension import sub_vec_id", "sim"),
    ],
)
def test_any_import_may_come_first(run_python, first: str, chosen: str | None) -> None:  # type: ignore[no-untyped-def]
    result = run_python(f"{first}; {USE} import shmem, torch_npu, triton; {DRIVER}", TRITON_DIST_BACKEND=chosen)
    assert (result.stdout.strip(), result.stderr) == ("SimulatedNPUDriver", "")


def test_torch_npu_says_that_it_is_simulated(run_python) -> None:  # type: ignore[no-untyped-def]
    result = run_python(
        "import torch_npu, torch\n"
        "assert torch_npu.npu is torch.npu\n"
        "x = torch.ones(2, device='npu')\n"
        "assert torch_npu.npu_format_cast(x, 29) is x\n"
        "print(torch_npu.__version__, torch_npu.simulated)\n"
        "try:\n"
        "    torch_npu.npu_fusion_attention\n"
        "except AttributeError as error:\n"
        "    print(error)\n",
        TRITON_DIST_BACKEND="sim",
    )
    version, error = result.stdout.splitlines()
    assert version.endswith("+simulated True")
    assert error.startswith("torch_npu.npu_fusion_attention is not there on simulated NPUs")


def test_without_autoload_importing_torch_npu_activates(run_python) -> None:  # type: ignore[no-untyped-def]
    result = run_python(
        f"import torch; print(hasattr(torch, 'npu')); import torch_npu; {USE}",
        TRITON_DIST_BACKEND="sim",
        TORCH_DEVICE_BACKEND_AUTOLOAD=0,
    )
    assert (result.stdout, result.stderr) == ("False\n", "")


def test_with_ascend_nothing_in_torch_is_changed(run_python) -> None:  # type: ignore[no-untyped-def]
    result = run_python(
        "import sys, torch, torch.distributed as dist\n"
        "assert torch._C._get_privateuse1_backend_name() == 'privateuseone'\n"
        "assert not hasattr(torch, 'npu') and not hasattr(torch.Tensor, 'npu')\n"
        "assert 'hccl' not in dist.Backend.backend_list\n"
        "for name in ('torch_npu', 'shmem'):\n"
        "    try:\n"
        "        __import__(name)\n"
        "    except ModuleNotFoundError as error:\n"
        "        print(error)\n"
        "print([name for name in sys.modules if name.startswith('triton_dist.runtime.torch_device')])\n",
        TRITON_DIST_BACKEND="ascend",
    )
    assert result.stdout == "No module named 'torch_npu'\nNo module named 'shmem'\n[]\n", result.stderr


@pytest.mark.parametrize(
    ("variable", "value"),
    [("TRITON_DIST_BACKEND", "nonsense"), ("TRITON_DIST_SIM_NPUS", "many"), ("TRITON_DIST_SIM_NPUS", "1000")],
)
def test_a_wrong_setting_is_one_line_and_torch_still_works(run_python, variable: str, value: str) -> None:  # type: ignore[no-untyped-def]
    code = "import torch; print(torch.ones(2).sum().item())"
    result = subprocess.run(
        [sys.executable, "-c", code],
        # Not by child_environ alone, which would refuse the value.
        env={**env.child_environ(), variable: value},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.stdout == "2.0\n"
    (line,) = result.stderr.splitlines()
    assert line.startswith("triton-dist: ")
    assert variable in line
    assert value in line


def test_the_child_of_a_spawn_is_activated_too(run_python, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    program = tmp_path / "program.py"
    program.write_text(
        "import multiprocessing\n"
        "def child():\n"
        f"    {USE}\n"
        "    print('child done', flush=True)\n"
        "if __name__ == '__main__':\n"
        "    process = multiprocessing.get_context('spawn').Process(target=child)\n"
        "    process.start(); process.join(); raise SystemExit(process.exitcode)\n"
    )
    result = subprocess.run(
        [sys.executable, program],
        env=env.child_environ(TRITON_DIST_BACKEND="sim"),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (result.returncode, result.stdout) == (0, "child done\n"), result.stderr


# ------------------------------------------------------------------------ another torch_npu installed

FAILS = "raise ImportError('libascend_hal.so: cannot open shared object file')\n"
WORKS = "real = True\ndef _autoload():\n    pass\n"


def install_torch_npu(site: Path, body: str) -> Path:
    """A distribution torch_npu with its entry point of torch.backends, as pip would leave it in `site`."""
    package = site / "torch_npu"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from torch_npu import _part\n" + body)
    (package / "_part.py").write_text("")
    metadata = site / "torch_npu-2.13.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: torch_npu\nVersion: 2.13.0\n")
    (metadata / "entry_points.txt").write_text("[torch.backends]\ntorch_npu = torch_npu:_autoload\n")
    (metadata / "RECORD").write_text("")
    return site


@pytest.mark.parametrize(
    ("first", "body"),
    [
        ("import torch", FAILS),
        ("import torch", WORKS),
        ("import torch_npu", FAILS),
        ("import shmem", FAILS),
        ("import triton", FAILS),
    ],
)
def test_sim_does_without_an_installed_torch_npu(run_python, tmp_path: Path, first: str, body: str) -> None:  # type: ignore[no-untyped-def]
    result = run_python(
        f"{first}; {USE} import torch_npu; print(torch_npu.simulated)",
        TRITON_DIST_BACKEND="sim",
        PYTHONPATH=install_torch_npu(tmp_path, body),
    )
    assert (result.stdout, result.stderr) == ("True\n", "")


@pytest.mark.parametrize("first", ["import torch", "import torch_npu", "import shmem"])
def test_auto_takes_the_place_of_a_torch_npu_that_cannot_load(run_python, tmp_path: Path, first: str) -> None:  # type: ignore[no-untyped-def]
    result = run_python(
        f"{first}; {USE} import torch_npu; print(torch_npu.simulated)",
        TRITON_DIST_BACKEND="auto",
        PYTHONPATH=install_torch_npu(tmp_path, FAILS),
    )
    assert result.stdout == "True\n", result.stderr
    (line,) = result.stderr.splitlines()
    assert "installed torch_npu cannot be loaded (libascend_hal.so: cannot open shared object file)" in line


def test_a_torch_npu_that_can_be_loaded_wins_over_auto(run_python, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    result = run_python(
        "import torch, torch_npu; print(torch_npu.real, hasattr(torch, 'npu'))",
        TRITON_DIST_BACKEND="auto",
        PYTHONPATH=install_torch_npu(tmp_path, WORKS),
    )
    assert result.stdout == "True False\n", result.stderr
    assert "set TRITON_DIST_BACKEND=sim to use simulated NPUs" in result.stderr


def test_with_ascend_a_torch_npu_that_cannot_load_is_not_hidden(run_python, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    result = run_python("import torch_npu", TRITON_DIST_BACKEND="ascend", PYTHONPATH=install_torch_npu(tmp_path, FAILS))
    assert result.returncode != 0
    assert "libascend_hal.so" in result.stderr


# --------------------------------------------------------------------------------------- what it costs


def test_a_start_of_python_imports_next_to_nothing(run_python) -> None:  # type: ignore[no-untyped-def]
    result = run_python("import sys; print([name for name in sys.modules if name.startswith('triton_dist')])")
    assert result.stdout == "['triton_dist', 'triton_dist.activation', 'triton_dist.activation.finder']\n"


def test_activation_takes_little_of_the_import_of_torch(run_python) -> None:  # type: ignore[no-untyped-def]
    """Some 13 ms on an idle machine. The process's own time is measured, and the limit is generous to a busy one."""
    result = run_python(
        "import time, torch\n"
        "from triton_dist import activation\n"
        "start = time.process_time(); activation.autoload(); print(time.process_time() - start)\n",
        TRITON_DIST_BACKEND="sim",
        TORCH_DEVICE_BACKEND_AUTOLOAD=0,
    )
    assert float(result.stdout) < 0.1
