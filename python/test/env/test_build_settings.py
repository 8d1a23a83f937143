"""Build-time variables: what the build backend makes of them, and what it refuses before compiling."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from _build_backend import checkout, llvm, settings
from _build_backend.errors import BuildSettingsError
from triton_dist import env


@pytest.fixture(autouse=True)
def _no_build_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in env.variables(env.BUILD):
        monkeypatch.delenv(variable.name, raising=False)


def _fake_llvm(prefix: Path, version: str, *, mlir: bool = True, tools: tuple[str, ...] = ()) -> Path:
    """A prefix with just the files that are looked at."""
    cmake = prefix / "lib" / "cmake"
    (cmake / "llvm").mkdir(parents=True)
    (cmake / "llvm" / "LLVMConfig.cmake").write_text(f"set(LLVM_PACKAGE_VERSION {version})\n")
    if mlir:
        (cmake / "mlir").mkdir()
        (cmake / "mlir" / "MLIRConfig.cmake").touch()
    (prefix / "bin").mkdir()
    for tool in tools:
        (prefix / "bin" / tool).touch()
    return prefix


def test_llvm_of_the_pinned_release_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pinned = checkout.versions()["toolchain"]["llvm"]
    monkeypatch.setenv("LLVM_SYSPATH", str(_fake_llvm(tmp_path / "llvm", pinned)))
    assert llvm.locate() == llvm.LLVM(tmp_path / "llvm", pinned)


def test_missing_llvm_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LLVM_SYSPATH", str(tmp_path / "nowhere"))
    with pytest.raises(BuildSettingsError, match=r"LLVM_SYSPATH=.*nowhere: no such directory"):
        settings.resolve()


def test_directory_without_llvm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LLVM_SYSPATH", str(tmp_path))
    with pytest.raises(BuildSettingsError, match=r"LLVMConfig\.cmake is missing"):
        settings.resolve()


@pytest.mark.parametrize("version", ["14.0.6", "19.10.0", "20.0.0git"])
def test_another_llvm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
    monkeypatch.setenv("LLVM_SYSPATH", str(_fake_llvm(tmp_path / "llvm", version)))
    with pytest.raises(BuildSettingsError, match=rf"that is LLVM {version}, and 19\.1 is needed"):
        settings.resolve()


def test_llvm_without_mlir(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LLVM_SYSPATH", str(_fake_llvm(tmp_path / "llvm", "19.1.7", mlir=False)))
    with pytest.raises(BuildSettingsError, match="without MLIR"):
        settings.resolve()


def test_pip_says_it_in_one_line_and_compiles_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--target", str(tmp_path)]
    environ = env.child_environ(LLVM_SYSPATH=tmp_path / "nowhere", PIP_DISABLE_PIP_VERSION_CHECK=1)
    result = subprocess.run(
        [*command, str(checkout.PYTHON_DIRECTORY)], env=environ, check=False, capture_output=True, text=True
    )
    assert result.returncode != 0
    assert "error: LLVM_SYSPATH=" in result.stderr
    assert "Traceback" not in result.stderr
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "value"),
    [(v.name, "perhaps") for v in env.variables(env.BUILD) if v.kind == "flag"]
    + [("MAX_JOBS", "0"), ("MAX_JOBS", "many"), ("TRITON_PARALLEL_LINK_JOBS", "-1")],
)
def test_a_bad_value_is_refused_before_the_build(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    # Without LLVM too: whoever has to install that first hears of the value before.
    monkeypatch.setenv("LLVM_SYSPATH", "/nowhere")
    for check in (settings.check_variables, settings.resolve):
        with pytest.raises(BuildSettingsError, match=f"^{name}='{value}' is not allowed: it takes ") as refusal:
            check()
        assert "\n" not in str(refusal.value)


def test_arguments_that_cannot_be_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_APPEND_CMAKE_ARGS", "-DA='1")
    with pytest.raises(BuildSettingsError, match=r"TRITON_APPEND_CMAKE_ARGS=.* cannot be split"):
        settings.check_variables()


UPSTREAMS = {
    **dict.fromkeys(
        ("TRITON_BUILD_PROTON", "TRITON_BUILD_LITTLE_KERNEL", "TRITON_BUILD_NPUIR", "TRITON_BUILD_TD"), "on"
    ),
    **dict.fromkeys(("TRITON_USE_ASCEND", "IS_MANYLINUX"), "OFF"),
    "TRITON_PLUGIN_DIRS": "/a;/b",
    "JSON_SYSPATH": "/usr",
    "TRITON_WHEEL_NAME": "triton",
    "TRITON_WHEEL_VERSION_SUFFIX": "+git",
}


def test_upstreams_variables_without_a_counterpart_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings.check_variables() == []
    for name, value in UPSTREAMS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MAX_JOBS", "2")
    notes = {note.partition("=")[0]: note for note in settings.check_variables()}
    assert set(notes) == set(UPSTREAMS)
    for name, value in UPSTREAMS.items():
        assert notes[name].startswith(f"{name}={value} has no counterpart here: ")
        assert notes[name].endswith(".")


def test_pip_names_them_too(tmp_path: Path) -> None:
    """In the build's output, which pip shows when it is asked to, or when the build fails."""
    command = [sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--target", str(tmp_path)]
    environ = env.child_environ(
        LLVM_SYSPATH=tmp_path / "nowhere", TRITON_BUILD_PROTON="1", PIP_DISABLE_PIP_VERSION_CHECK=1
    )
    result = subprocess.run(
        [*command, str(checkout.PYTHON_DIRECTORY)], env=environ, check=False, capture_output=True, text=True
    )
    assert result.returncode != 0
    assert "note: TRITON_BUILD_PROTON=1 has no counterpart here" in result.stdout + result.stderr


def nox_build(**variables: object) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("nox", reason="nox runs from another environment here")
    command = [sys.executable, "-m", "nox", "-f", str(checkout.ROOT / "noxfile.py"), "-s", "build"]
    # Not by child_environ alone, which would refuse a bad value.
    environ = {**env.child_environ(), **{name: str(value) for name, value in variables.items()}}
    return subprocess.run(command, env=environ, check=False, capture_output=True, text=True)


def test_nox_refuses_a_bad_value_before_anything_starts() -> None:
    result = nox_build(TRITON_BUILD_WITH_CCACHE="perhaps")
    assert result.returncode != 0
    output = result.stdout + result.stderr
    assert "TRITON_BUILD_WITH_CCACHE='perhaps' is not allowed: it takes ON 1 YES TRUE Y" in output
    # The line that announces a step.
    assert "──" not in output


def test_nox_names_what_has_no_counterpart(tmp_path: Path) -> None:
    result = nox_build(TRITON_BUILD_LITTLE_KERNEL="OFF", LLVM_SYSPATH=tmp_path / "nowhere")
    assert result.returncode != 0
    assert "TRITON_BUILD_LITTLE_KERNEL=OFF has no counterpart here: The little-kernel" in result.stdout


def test_cmake_knows_every_setting_that_it_is_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    prefix = _fake_llvm(tmp_path / "llvm", "19.1.7", tools=("clang", "clang++", "ld.lld"))
    monkeypatch.setenv("LLVM_SYSPATH", str(prefix))
    monkeypatch.setenv("TRITON_PARALLEL_LINK_JOBS", "2")
    monkeypatch.setenv("TRITON_OFFLINE_BUILD", "1")
    defines = settings.resolve().defines
    lists = (checkout.ROOT / "csrc" / "CMakeLists.txt").read_text()
    ours = {name for name in defines if not name.startswith(("CMAKE_", "FETCHCONTENT_"))}
    assert ours == {"LLVM_SYSPATH", "TDIST_USE_LLD", "TDIST_PARALLEL_LINK_JOBS"}
    for name in ours:
        assert re.search(rf"^(set|option)\({name} ", lists, re.MULTILINE), name


def test_clang_and_lld_are_used_where_they_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    prefix = _fake_llvm(tmp_path / "llvm", "19.1.7", tools=("clang", "clang++", "ld.lld"))
    monkeypatch.setenv("LLVM_SYSPATH", str(prefix))
    defines = settings.resolve().defines
    assert defines["CMAKE_CXX_COMPILER"] == str(prefix / "bin" / "clang++")
    assert defines["TDIST_USE_LLD"] == "ON"
    monkeypatch.setenv("TRITON_BUILD_WITH_CLANG_LLD", "off")
    assert "CMAKE_CXX_COMPILER" not in settings.resolve().defines


def test_asking_for_clang_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LLVM_SYSPATH", str(_fake_llvm(tmp_path / "llvm", "19.1.7", tools=("clang", "clang++"))))
    assert "CMAKE_CXX_COMPILER" not in settings.resolve().defines
    monkeypatch.setenv("TRITON_BUILD_WITH_CLANG_LLD", "on")
    with pytest.raises(BuildSettingsError, match=r"has no ld\.lld"):
        settings.resolve()


def test_asking_for_ccache_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LLVM_SYSPATH", str(_fake_llvm(tmp_path / "llvm", "19.1.7")))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "CMAKE_CXX_COMPILER_LAUNCHER" not in settings.resolve().defines
    monkeypatch.setenv("TRITON_BUILD_WITH_CCACHE", "1")
    with pytest.raises(BuildSettingsError, match="no ccache on PATH"):
        settings.resolve()


@pytest.mark.parametrize(
    ("variable", "build_type"),
    [
        (None, "Release"),
        ("DEBUG", "Debug"),
        ("REL_WITH_DEB_INFO", "RelWithDebInfo"),
        ("TRITON_REL_BUILD_WITH_ASSERTS", "TritonRelBuildWithAsserts"),
        ("TRITON_BUILD_WITH_O1", "TritonBuildWithO1"),
    ],
)
def test_build_type(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str | None, build_type: str) -> None:
    monkeypatch.setenv("LLVM_SYSPATH", str(_fake_llvm(tmp_path / "llvm", "19.1.7")))
    if variable is not None:
        monkeypatch.setenv(variable, "y")
    assert settings.resolve().config(None)["cmake.build-type"] == build_type


def test_two_build_types(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LLVM_SYSPATH", str(_fake_llvm(tmp_path / "llvm", "19.1.7")))
    monkeypatch.setenv("DEBUG", "1")
    monkeypatch.setenv("TRITON_BUILD_WITH_O1", "1")
    with pytest.raises(BuildSettingsError, match="DEBUG and TRITON_BUILD_WITH_O1"):
        settings.resolve()


def test_jobs_and_arguments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LLVM_SYSPATH", str(_fake_llvm(tmp_path / "llvm", "19.1.7")))
    monkeypatch.setenv("MAX_JOBS", "3")
    monkeypatch.setenv("TRITON_PARALLEL_LINK_JOBS", "1")
    monkeypatch.setenv("TRITON_APPEND_CMAKE_ARGS", "-DA=1 '-DB=two words'")
    resolved = settings.resolve()
    config = resolved.config(None)
    assert config["build.tool-args"] == ["-j3"]
    assert config["cmake.args"] == ["-DA=1", "-DB=two words"]
    assert config["cmake.define.TDIST_PARALLEL_LINK_JOBS"] == "1"
    assert resolved.config({"build.tool-args": "-j9"})["build.tool-args"] == "-j9"


def test_offline_build_refuses_downloads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LLVM_SYSPATH", str(_fake_llvm(tmp_path / "llvm", "19.1.7")))
    settings.resolve().forbid_downloads(["cmake>=3.25"])
    monkeypatch.setenv("TRITON_OFFLINE_BUILD", "ON")
    resolved = settings.resolve()
    resolved.forbid_downloads([])
    with pytest.raises(BuildSettingsError, match=r"would download cmake>=3\.25"):
        resolved.forbid_downloads(["cmake>=3.25"])


def test_what_a_changed_setting_costs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(settings, "ROOT", tmp_path)
    monkeypatch.setenv("LLVM_SYSPATH", str(_fake_llvm(tmp_path / "llvm", "19.1.7")))
    assert settings.resolve().config(None)["cmake.fresh"] == "true"
    monkeypatch.setenv("TRITON_PARALLEL_LINK_JOBS", "1")
    settings.resolve().remember()
    assert "cmake.fresh" not in settings.resolve().config(None)
    # One that is gone is taken out of the cache; all else in there stays.
    monkeypatch.delenv("TRITON_PARALLEL_LINK_JOBS")
    config = settings.resolve().config(None)
    assert "cmake.fresh" not in config
    assert config["cmake.args"] == ["-UTDIST_PARALLEL_LINK_JOBS"]
    # Another LLVM, and arguments whose meaning nobody knows, need an empty one.
    monkeypatch.setenv("TRITON_APPEND_CMAKE_ARGS", "-DA=1")
    assert settings.resolve().config(None)["cmake.fresh"] == "true"
    monkeypatch.delenv("TRITON_APPEND_CMAKE_ARGS")
    monkeypatch.setenv("LLVM_SYSPATH", str(_fake_llvm(tmp_path / "other", "19.1.7")))
    assert settings.resolve().config(None)["cmake.fresh"] == "true"
