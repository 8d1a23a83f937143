"""Wheels that hold all that they need, checked, and tried in an environment of their own."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nox

from _build_backend.checkout import PYTHON_DIRECTORY, ROOT, env
from ci import report
from ci.installation import BUILD_ROOT, Installation, ensure_extra

WHEELS = BUILD_ROOT / "wheels"

# What every Linux has, as the manylinux policies say, and the loader.
_OF_THE_SYSTEM = re.compile(r"(linux-vdso|ld-linux[\w-]*|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|z))\.so")
_RANKS = "2"


def build(session: nox.Session, installation: Installation) -> None:
    """Builds the wheel for the environment's Python, puts LLVM's libraries into it, and tries it."""
    ensure_extra(session, installation.environment, "release")
    raw = WHEELS / "raw"
    for directory in (raw, WHEELS):
        for old in directory.glob("triton_dist-*.whl"):
            old.unlink()
    with report.step(session.name, "wheel"):
        installation.environment.run(
            session,
            *("-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-build-isolation", "--no-deps"),
            # Not in the directory of the editable installation, which CMake would then install elsewhere from.
            *(f"-Cbuild-dir={BUILD_ROOT / 'wheel-{wheel_tag}'}", "--wheel-dir", str(raw), str(PYTHON_DIRECTORY)),
        )
    (plain,) = raw.glob("triton_dist-*.whl")
    with report.step(session.name, "auditwheel") as row:
        installation.environment.run(session, "-m", "auditwheel", "repair", "--wheel-dir", str(WHEELS), str(plain))
        (whole,) = WHEELS.glob("triton_dist-*.whl")
        row.result = f"ok, {whole.name}, {whole.stat().st_size >> 20} MB"
    with report.step(session.name, "the wheel in a fresh environment"):
        _try(session, installation, whole)


def _try(session: nox.Session, installation: Installation, wheel: Path) -> None:
    """Installs the wheel alone into a new environment, far from the checkout, and runs two ranks with it."""
    with tempfile.TemporaryDirectory(prefix="triton-dist-wheel-") as directory:
        fresh = Path(directory, "venv")
        made = ("-m", "virtualenv", "--quiet", "--python", str(installation.environment.python), str(fresh))
        session.run(sys.executable, *made, external=True)
        python = str(fresh / "bin" / "python")
        session.run(python, "-m", "pip", "--quiet", "install", "--no-index", "--no-deps", str(wheel), external=True)
        site = Path(_printed(python, "import sysconfig; print(sysconfig.get_path('purelib'))"))
        # What the package needs is lent by the environment, whose own .pth files this does not read: the checkout,
        # which they lead to, stays out of sight.
        (site / "lent.pth").write_text(f"{installation.environment.probe([])['purelib']}\n")
        package = Path(_printed(python, "import triton_dist; print(triton_dist.__path__[0])"))
        if not package.is_relative_to(fresh):
            session.error(f"the fresh environment imports triton_dist from {package}")
        for file in (*(package / "bin").iterdir(), *(package / "lib").iterdir()):
            _check_libraries(session, file, fresh)
        shutil.copy(ROOT / "python" / "tutorials" / "hello_ring.py", directory)
        alone = {"LLVM_SYSPATH": "", "TRITON_DIST_BACKEND": "sim"}
        ranks = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={_RANKS}", "hello_ring.py")
        with session.chdir(directory):
            session.run(python, "-m", "triton_dist", "doctor", "--only", "triton", external=True)
            session.run(python, *ranks, env=alone, external=True)


def _printed(python: str, program: str) -> str:
    return subprocess.run([python, "-c", program], check=True, capture_output=True, text=True, cwd="/").stdout.strip()


def _check_libraries(session: nox.Session, file: Path, fresh: Path) -> None:
    """Ends the session where a program or library of the wheel needs what is neither in it nor in every system."""
    done = subprocess.run(["ldd", file], check=False, capture_output=True, text=True, env=env.child_environ())
    for name, place in re.findall(r"^\s*(\S+)(?: => (\S.*?))?(?: \(0x[0-9a-f]+\))?$", done.stdout, re.MULTILINE):
        base = name.rpartition("/")[2]
        if not _OF_THE_SYSTEM.match(base) and not Path(place or name).resolve().is_relative_to(fresh.resolve()):
            session.error(f"{file.name} of the wheel needs {base}, which is {place or 'not found'}")
