"""The tests of csrc: unit tests of the runtime, lit tests of the passes, and the former under sanitizers."""

from __future__ import annotations

import nox

from _build_backend import settings
from _build_backend.checkout import ROOT
from ci import report
from ci.installation import BUILD_ROOT, Installation

UNIT_TESTS_TARGET = "tdist_unit_tests"

# Leaks are part of `address` on Linux. A run must not go on after undefined behaviour was seen.
SANITIZERS = {
    "address,undefined": {"ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"},
    "thread": {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"},
}

# qemu's user mode cannot start a thread in the child of a process that had several (seen in 7.2: it aborts).
NOT_UNDER_QEMU = "AForkedChildHasAnEngineOfItsOwn"


def run_unit(session: nox.Session, installation: Installation) -> None:
    """Builds and runs the runtime's unit tests."""
    with report.step(session.name, "unit tests of csrc/runtime"):
        _build_and_run(session, str(installation.build_directory), jobs=settings.resolve().jobs, variables={})


def run_lit(session: nox.Session, installation: Installation) -> None:
    """Runs the lit tests with the tools that were installed."""
    with report.step(session.name, "lit tests of csrc"):
        report_all = "--show-all" if session.interactive else "--succinct"
        session.run(
            *(str(installation.environment.bin / "lit"), "--verbose", report_all),
            f"--param=tdist_tools_dir={installation.native / 'bin'}",
            f"--param=llvm_tools_dir={installation.llvm.prefix / 'bin'}",
            str(ROOT / "csrc" / "test" / "lit"),
            external=True,
        )


def run_sanitized(session: nox.Session, sanitizers: str) -> None:
    """Builds the runtime alone, without LLVM, under the sanitizers, and runs its unit tests."""
    resolved = settings.resolve()
    directory = BUILD_ROOT / f"sanitize-{sanitizers.replace(',', '-')}"
    with report.step(session.name, f"unit tests under {sanitizers}"):
        defines = {
            **resolved.defines,
            "CMAKE_BUILD_TYPE": "RelWithDebInfo",
            "TDIST_BUILD_COMPILER": "OFF",
            "TDIST_SANITIZE": sanitizers,
        }
        arguments = [f"-D{name}={value}" for name, value in defines.items()]
        command = ["cmake", "-G", "Ninja", "-S", str(ROOT / "csrc"), "-B", str(directory), *arguments]
        session.run(*command, external=True)
        _build_and_run(session, str(directory), jobs=resolved.jobs, variables=SANITIZERS[sanitizers])


def run_aarch64(session: nox.Session) -> None:
    """Builds the runtime alone for aarch64, and runs its unit tests under qemu."""
    resolved = settings.resolve()
    directory = BUILD_ROOT / "aarch64"
    with report.step(session.name, "packages to build and run for aarch64"):
        session.run(str(ROOT / "ci" / "bootstrap"), "--aarch64", external=True)
    with report.step(session.name, "unit tests for aarch64, under qemu"):
        toolchain = ROOT / "csrc" / "cmake" / "aarch64.cmake"
        source = ROOT / "csrc" / "test" / "unit"
        launcher = {name: value for name, value in resolved.defines.items() if name.endswith("_COMPILER_LAUNCHER")}
        defines = {**launcher, "CMAKE_TOOLCHAIN_FILE": str(toolchain), "CMAKE_BUILD_TYPE": "Release"}
        arguments = [f"-D{name}={value}" for name, value in defines.items()]
        session.run("cmake", "-G", "Ninja", "-S", str(source), "-B", str(directory), *arguments, external=True)
        without = ("--exclude-regex", NOT_UNDER_QEMU)
        _build_and_run(session, str(directory), jobs=resolved.jobs, variables={}, choice=without)


def _build_and_run(
    session: nox.Session, directory: str, *, jobs: int, variables: dict[str, str], choice: tuple[str, ...] = ()
) -> None:
    session.run("cmake", "--build", directory, "--target", UNIT_TESTS_TARGET, f"-j{jobs}", external=True)
    session.run(
        *("ctest", "--test-dir", directory, "--output-on-failure", "--no-tests=error", "--timeout", "300"),
        *(f"--parallel={jobs}", *choice),
        env=dict(variables),
        external=True,
    )
