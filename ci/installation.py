"""Brings the environment up to date: system packages, Python packages, csrc and the editable install.

Each part first looks whether it has anything to do, so that a run with nothing changed is quick.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nox

from _build_backend import llvm, settings
from _build_backend.checkout import PYTHON_DIRECTORY, ROOT, env, read_toml, versions
from _build_backend.errors import BuildSettingsError
from ci import build_record, fewer_jobs, report
from ci.environment import OFFLINE_FLAG, Environment, current
from ci.images import wheelhouse

BUILD_ROOT = ROOT / "build"
DOWNLOAD_FLAG = "--download"


@dataclass(frozen=True)
class Installation:
    """What a session works with once everything is built.

    Attributes:
        environment: where it is installed.
        build_directory: CMake's build directory.
        native: the directory that holds lib/, bin/ and _build_info.py.
        llvm: the LLVM it was built against.
    """

    environment: Environment
    build_directory: Path
    native: Path
    llvm: llvm.LLVM


def ensure(session: nox.Session) -> Installation:
    """Builds and installs whatever is not current, and checks which triton is imported.

    Every session calls it first. A wrong setting or LLVM ends the session before anything is installed.
    """
    if OFFLINE_FLAG in session.posargs:
        env.apply({env.TRITON_OFFLINE_BUILD.name: "1"})
    _check_variables(session)
    if env.LLVM_SYSPATH.is_set():
        _resolve(session)
    with _one_at_a_time():
        _ensure_system_packages(session)
        resolved = _resolve(session)
        environment = current(session)
        doctor(session, environment, "--before-build")
        _ensure_python_packages(session, environment, resolved)
        build_directory = _ensure_built(session, environment, resolved)
        _ensure_torch_device(session, environment)
        _check_triton(session, environment)
    return Installation(environment, build_directory, native_directory(build_directory), llvm.locate())


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Two sessions started in one checkout would install into one environment at the same time."""
    BUILD_ROOT.mkdir(exist_ok=True)
    with (BUILD_ROOT / "session.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report.note("another session builds in this checkout; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _check_variables(session: nox.Session) -> None:
    """Refuses a value before anything is installed; says which variables of upstream's mean nothing here."""
    try:
        notes = settings.check_variables()
    except BuildSettingsError as error:
        session.error(str(error))
    for note in notes:
        report.note(note)


def _resolve(session: nox.Session) -> settings.BuildSettings:
    try:
        return settings.resolve()
    except BuildSettingsError as error:
        session.error(str(error))


def _ensure_system_packages(session: nox.Session) -> None:
    bootstrap = ROOT / "ci" / "bootstrap"
    check = subprocess.run([bootstrap, "--check"], check=False, capture_output=True, text=True)
    if check.returncode == 0:
        return
    missing = check.stdout.split()
    if missing and os.geteuid() == 0 and not env.TRITON_OFFLINE_BUILD.get():
        with report.step(session.name, "system packages"):
            session.run(str(bootstrap), external=True)
        return
    # Another distribution, or tools from elsewhere: what is really missing shows below, by name.
    mend = subprocess.run([bootstrap], check=False, capture_output=True, text=True).stderr if missing else check.stderr
    report.note(mend.strip())


def _ensure_python_packages(session: nox.Session, environment: Environment, resolved: settings.BuildSettings) -> None:
    project = read_toml(PYTHON_DIRECTORY / "pyproject.toml")
    extras = project["project"]["optional-dependencies"]
    requirements = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *extras["test"],
        *extras["compile"],
        *extras["lint"],
    ]
    state = environment.probe(requirements)
    stock_triton = "triton" in state["distributions"]
    torch_missing = "torch" not in state["distributions"]
    if not (state["unsatisfied"] or stock_triton or torch_missing):
        return
    missing = [*state["unsatisfied"], *([f"torch=={versions()['python']['torch']}"] if torch_missing else [])]
    if resolved.offline and missing:
        _install_from_wheelhouse(session, environment, missing)
        return
    with report.step(session.name, "Python packages"):
        if torch_missing:
            _install_torch(session, environment)
        if state["unsatisfied"]:
            report.note(f"installing {', '.join(state['unsatisfied'])}")
            _pip(session, environment, "install", *state["unsatisfied"])
        _remove_stock_triton(session, environment)


def _install_from_wheelhouse(session: nox.Session, environment: Environment, missing: list[str]) -> None:
    """What is missing, from the wheels that `nox -s build -- --download` keeps."""
    directory = wheelhouse.directory("sim")
    if not directory.is_dir():
        session.error(
            f"offline, and these packages would be downloaded: {', '.join(missing)}; "
            f"where there is a network, nox -s build -- --download fills {directory}"
        )
    with report.step(session.name, f"Python packages, from {directory}"):
        report.note(f"installing {', '.join(missing)}")
        _pip(session, environment, "install", "--no-index", "--find-links", str(directory), *missing)


def ensure_extra(session: nox.Session, environment: Environment, extra: str) -> None:
    """Installs the tools of an extra of the package that only some sessions need, where they are missing."""
    requirements = read_toml(PYTHON_DIRECTORY / "pyproject.toml")["project"]["optional-dependencies"][extra]
    missing = environment.probe(requirements)["unsatisfied"]
    if missing and env.TRITON_OFFLINE_BUILD.get():
        session.error(f"TRITON_OFFLINE_BUILD is on and these packages would be downloaded: {', '.join(missing)}")
    if missing:
        with report.step(session.name, f"Python packages: {', '.join(missing)}"):
            _pip(session, environment, "install", *missing)


def _install_torch(session: nox.Session, environment: Environment) -> None:
    torch = f"torch=={versions()['python']['torch']}"
    index = env.TRITON_DIST_TORCH_INDEX.get()
    if index is None:
        report.note(f"installing {torch} from pip's own index; TRITON_DIST_TORCH_INDEX names another one, and")
        report.note("a torch that the environment already has is kept (a default build for CUDA is several GB)")
        _pip(session, environment, "install", torch)
    elif Path(index).is_dir():
        _pip(session, environment, "install", torch, "--find-links", index)
    else:
        _pip(session, environment, "install", torch, "--index-url", index)


def _remove_stock_triton(session: nox.Session, environment: Environment) -> None:
    """A CUDA build of torch brings the stock `triton`, whose files lie where triton-ascend's belong."""
    if "triton" not in environment.probe([])["distributions"]:
        return
    report.note("removing the stock triton, which would hide triton-ascend")
    _pip(session, environment, "uninstall", "--yes", "triton")
    ascend = f"triton-ascend=={versions()['python']['triton-ascend']}"
    _pip(session, environment, "install", "--force-reinstall", "--no-deps", ascend)


def _ensure_built(session: nox.Session, environment: Environment, resolved: settings.BuildSettings) -> Path:
    state = environment.probe([])
    record = build_record.BuildRecord(BUILD_ROOT, state["cache_tag"], resolved.build_type)
    inputs = build_record.inputs(resolved, state["prefix"])
    leads_here = state["redirect"] is not None and Path(state["redirect"]["build"]).parent == BUILD_ROOT
    changes = record.changes(inputs)
    with report.step(session.name, f"csrc ({resolved.summary})") as row:
        start = time.monotonic()
        if leads_here and not changes:
            _rebuild(session, environment)
            row.result = "ok, was installed already"
        else:
            if record.read() and changes:
                report.note(f"installed again, since these are others than in the last build: {', '.join(changes)}")
            record.forget()
            fewer_jobs.retry(lambda jobs: _install(session, environment, jobs), resolved.jobs)
        redirect: dict[str, Any] | None = environment.probe([])["redirect"]
        if redirect is None:
            session.error(
                f"triton_dist was installed and {environment.python} does not see it: is site-packages writable?"
            )
        built = Path(redirect["build"])
        record.write(inputs, resolved, native_directory(built), {"csrc": time.monotonic() - start})
    return built


def _install(session: nox.Session, environment: Environment, jobs: int) -> None:
    arguments = ["--no-build-isolation", "--no-deps", "--editable", str(PYTHON_DIRECTORY)]
    _pip(session, environment, "install", "--verbose", *arguments, quiet=False, variables={"MAX_JOBS": str(jobs)})


def native_directory(build_directory: Path) -> Path:
    """Where CMake installs what it builds in a build directory."""
    return build_directory / "install" / "platlib" / "triton_dist"


def _rebuild(session: nox.Session, environment: Environment) -> None:
    """Importing this module is what brings an editable installation up to date."""
    program = "import triton_dist._build_info"
    environment.run(session, "-c", program, variables={"SKBUILD_EDITABLE_VERBOSE": "1"})


def doctor(session: nox.Session, environment: Environment, *arguments: str) -> None:
    """Looks for what is wrong with host and environment; ends the session where something must be mended first."""
    with report.step(session.name, "doctor"):
        # From the sources: nothing need be installed yet.
        variables = {"PYTHONPATH": str(PYTHON_DIRECTORY)}
        environment.run(session, "-m", "triton_dist", "doctor", "--quick", *arguments, variables=variables)


def _check_triton(session: nox.Session, environment: Environment) -> None:
    environment.run(session, "-m", "triton_dist", "doctor", "--only", "triton")


def _ensure_torch_device(session: nox.Session, environment: Environment) -> None:
    """The first import of torch would compile it otherwise, and make its user wait."""
    with report.step(session.name, "torch device npu"):
        environment.run(session, "-m", "triton_dist.runtime.torch_device.build")


def _pip(
    session: nox.Session,
    environment: Environment,
    *arguments: str,
    quiet: bool = True,
    variables: dict[str, str] | None = None,
) -> None:
    flags = ["--quiet", "--quiet"] if quiet else []
    start = time.monotonic()
    command = ("-m", "pip", "--disable-pip-version-check", *flags, *arguments)
    environment.run(session, *command, variables=variables)
    report.note(f"pip {arguments[0]} took {time.monotonic() - start:.1f} s")
