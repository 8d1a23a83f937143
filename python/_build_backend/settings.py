"""From build-time environment variables to settings of scikit-build-core."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from _build_backend import llvm
from _build_backend.checkout import ROOT, env
from _build_backend.errors import BuildSettingsError

_NEEDS_EMPTY_CACHE = ("CMAKE_C_COMPILER", "CMAKE_CXX_COMPILER", "LLVM_SYSPATH")


@dataclass(frozen=True)
class BuildSettings:
    """What the environment asks of a build.

    Attributes:
        build_type: CMake's build type.
        defines: CMake cache entries by name.
        cmake_args: further arguments of the configure step.
        jobs: compile jobs at once.
        offline: nothing may be downloaded.
        summary: the choices made, in one line for the user.
    """

    build_type: str
    defines: dict[str, str]
    cmake_args: tuple[str, ...]
    jobs: int
    offline: bool
    summary: str

    def config(self, given: dict[str, str | list[str]] | None) -> dict[str, str | list[str]]:
        """These settings in scikit-build-core's words; `given` (pip's -C) wins."""
        config: dict[str, str | list[str]] = {
            "cmake.build-type": self.build_type,
            "cmake.args": list(self.cmake_args),
            "build.tool-args": [f"-j{self.jobs}"],
            **{f"cmake.define.{name}": value for name, value in self.defines.items()},
        }
        defines, arguments = self._remembered()
        # CMake keeps what it was configured with first. Another compiler or LLVM needs an empty cache, which has all
        # be built again; any other choice takes the place of the earlier one, and what does not depend on it stays.
        if (
            any(self.defines.get(name) != defines.get(name) for name in _NEEDS_EMPTY_CACHE)
            or self.cmake_args != arguments
        ):
            config["cmake.fresh"] = "true"
        else:
            forgotten = [f"-U{name}" for name in sorted(defines.keys() - self.defines.keys())]
            config["cmake.args"] = [*self.cmake_args, *forgotten]
        return {**config, **(given or {})}

    def remember(self) -> None:
        """Notes that the build directory is now configured with these settings."""
        self._record().parent.mkdir(parents=True, exist_ok=True)
        self._record().write_text(self._fingerprint())

    def forbid_downloads(self, requires: list[str]) -> None:
        """Raises BuildSettingsError if the build is offline and needs packages from an index."""
        if self.offline and requires:
            raise BuildSettingsError(
                f"TRITON_OFFLINE_BUILD is on and the build would download {', '.join(requires)}: "
                "install cmake and ninja-build first (ci/bootstrap --check lists what is missing)"
            )

    def _record(self) -> Path:
        return ROOT / "build" / f"{sys.implementation.cache_tag}-{self.build_type}.settings.json"

    def _fingerprint(self) -> str:
        return json.dumps([self.defines, self.cmake_args], sort_keys=True)

    def _remembered(self) -> tuple[dict[str, str], tuple[str, ...] | None]:
        """The defines and arguments of the last build; without one, arguments that no build has."""
        try:
            defines, arguments = json.loads(self._record().read_text())
            return dict(defines), tuple(arguments)
        except (OSError, ValueError, TypeError):
            return {}, None


def check_variables() -> list[str]:
    """Checks the values of all build-time variables, also of those that nothing here asks for.

    Returns:
        One line for each variable of upstream's that is set and has no counterpart here: why it has none.

    Raises:
        BuildSettingsError: a value is not allowed, or two of them do not go together.
    """
    try:
        for variable in env.variables(env.BUILD):
            variable.get()
    except env.EnvironmentVariableError as error:
        raise BuildSettingsError(str(error)) from None
    _choose_build_type()
    _appended_arguments()
    return [
        f"{variable.name}={variable.text()} has no counterpart here: {variable.note}"
        for variable in env.variables(env.BUILD)
        if variable.is_set() and variable.acts_on == env.NOTHING
    ]


def resolve() -> BuildSettings:
    """Reads and checks the build-time environment variables.

    Raises:
        BuildSettingsError: a value is not allowed, or names a tool or an LLVM that is not there.
    """
    check_variables()
    found = llvm.locate()
    defines = {"LLVM_SYSPATH": str(found.prefix)}
    compiler = _choose_compiler(found, defines)
    ccache = _choose_ccache(defines)
    links = env.TRITON_PARALLEL_LINK_JOBS.get()
    if links is not None:
        defines["TDIST_PARALLEL_LINK_JOBS"] = str(links)
    offline = env.TRITON_OFFLINE_BUILD.get()
    if offline:
        defines["FETCHCONTENT_FULLY_DISCONNECTED"] = "ON"
    build_type = _choose_build_type()
    jobs = env.MAX_JOBS.get() or len(os.sched_getaffinity(0))
    return BuildSettings(
        build_type=build_type,
        defines=defines,
        cmake_args=_appended_arguments(),
        jobs=jobs,
        offline=offline,
        summary=f"{build_type}, LLVM {found.version} at {found.prefix}, {compiler}, {ccache}, {jobs} jobs",
    )


def _choose_compiler(found: llvm.LLVM, defines: dict[str, str]) -> str:
    wanted = env.TRITON_BUILD_WITH_CLANG_LLD.get()
    tools = {name: found.tool(name) for name in ("clang", "clang++", "ld.lld")}
    missing = [name for name, path in tools.items() if path is None]
    if wanted and missing:
        raise BuildSettingsError(
            f"TRITON_BUILD_WITH_CLANG_LLD is on and {found.prefix}/bin has no {', '.join(missing)}: "
            "run ci/bootstrap as root, or set it to OFF to build with the default compiler"
        )
    if wanted is False or missing:
        return "the default compiler"
    defines["CMAKE_C_COMPILER"] = str(tools["clang"])
    defines["CMAKE_CXX_COMPILER"] = str(tools["clang++"])
    defines["TDIST_USE_LLD"] = "ON"
    return "clang and lld"


def _choose_ccache(defines: dict[str, str]) -> str:
    wanted = env.TRITON_BUILD_WITH_CCACHE.get()
    ccache = shutil.which("ccache")
    if wanted and ccache is None:
        raise BuildSettingsError(
            "TRITON_BUILD_WITH_CCACHE is on and there is no ccache on PATH: install it, or set it to OFF"
        )
    if wanted is False or ccache is None:
        return "no ccache"
    # With paths relative to the checkout, one checkout can use what another has compiled.
    launcher = f"cmake;-E;env;CCACHE_BASEDIR={ROOT};{ccache}"
    defines["CMAKE_C_COMPILER_LAUNCHER"] = launcher
    defines["CMAKE_CXX_COMPILER_LAUNCHER"] = launcher
    return "ccache"


def _choose_build_type() -> str:
    flags = {
        env.DEBUG: "Debug",
        env.REL_WITH_DEB_INFO: "RelWithDebInfo",
        env.TRITON_REL_BUILD_WITH_ASSERTS: "TritonRelBuildWithAsserts",
        env.TRITON_BUILD_WITH_O1: "TritonBuildWithO1",
    }
    chosen = [variable for variable in flags if variable.get()]
    if len(chosen) > 1:
        names = " and ".join(variable.name for variable in chosen)
        raise BuildSettingsError(f"{names} are on together: a build has one type, choose one of them")
    return flags[chosen[0]] if chosen else "Release"


def _appended_arguments() -> tuple[str, ...]:
    text = env.TRITON_APPEND_CMAKE_ARGS.get() or ""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise BuildSettingsError(f"TRITON_APPEND_CMAKE_ARGS={text!r} cannot be split: {error}") from None
