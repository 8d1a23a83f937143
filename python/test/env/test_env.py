"""The registry of environment variables: values, defaults, refusals, and its cost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from triton_dist import env

PYTHON_DIRECTORY = Path(env.__file__).parents[1]


@pytest.mark.parametrize("word", ["ON", "1", "yes", "True", "y"])
def test_flag_takes_upstreams_words_for_true(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv("TRITON_OFFLINE_BUILD", word)
    assert env.TRITON_OFFLINE_BUILD.get() is True


@pytest.mark.parametrize("word", ["off", "0", "NO", "false", "n"])
def test_flag_takes_words_for_false(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", word)
    assert env.TORCH_DEVICE_BACKEND_AUTOLOAD.get() is False


def test_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in env.REGISTRY:
        monkeypatch.delenv(name, raising=False)
    assert env.TRITON_DIST_BACKEND.get() == "auto"
    assert env.TRITON_DIST_SIM_NPUS.get() == 8
    assert env.TRITON_DIST_SIM_SOC.get() == "Ascend910B3"
    assert env.TRITON_DIST_SESSION.get() is None
    assert env.TRITON_DIST_CACHE_DIR.get() == Path.home() / ".cache" / "triton-dist"
    assert env.TRITON_DIST_HEAP_TIMEOUT.get() == 60.0
    assert env.TRITON_BUILD_WITH_CLANG_LLD.get() is None


def test_values_are_read_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DIST_SIM_NPUS", "16")
    assert env.TRITON_DIST_SIM_NPUS.get() == 16
    monkeypatch.setenv("TRITON_DIST_SIM_NPUS", "4")
    assert env.TRITON_DIST_SIM_NPUS.get() == 4


def test_blank_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DIST_BACKEND", " ")
    assert not env.TRITON_DIST_BACKEND.is_set()
    assert env.TRITON_DIST_BACKEND.get() == "auto"


def test_home_is_expanded_in_directories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DIST_LEASE_DIR", "~/leases")
    assert env.TRITON_DIST_LEASE_DIR.get() == Path.home() / "leases"


def test_visible_devices_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "5,4")
    assert env.ASCEND_RT_VISIBLE_DEVICES.get() == (5, 4)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("TRITON_DIST_BACKEND", "cuda", "auto, sim, ascend"),
        ("TRITON_DIST_SIM_NPUS", "0", "from 1 to 1024"),
        ("TRITON_DIST_SIM_NPUS", "many", "integer"),
        ("TRITON_DIST_MASTER_PORT", "70000", "65535"),
        ("TRITON_DIST_HEAP_TIMEOUT", "-1", "greater than 0"),
        ("TRITON_DIST_HEAP_TIMEOUT", "nan", "greater than 0"),
        ("TRITON_BUILD_WITH_CCACHE", "perhaps", "ON 1 YES TRUE Y"),
        ("ASCEND_RT_VISIBLE_DEVICES", "1,1", "different integers"),
    ],
)
def test_a_refusal_names_variable_value_and_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, allowed: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(env.EnvironmentVariableError) as refusal:
        env.REGISTRY[name].get()
    message = str(refusal.value)
    assert "\n" not in message
    for part in (name, value, allowed):
        assert part in message


def test_child_environ_changes_only_the_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER_PORT", "29500")
    monkeypatch.delenv("RANK", raising=False)
    child = env.child_environ(RANK=3, MASTER_PORT=None, SOME_OTHER="x")
    assert child["RANK"] == "3"
    assert child["SOME_OTHER"] == "x"
    assert "MASTER_PORT" not in child
    assert env.MASTER_PORT.get() == 29500
    assert env.RANK.get() is None


def test_apply_changes_this_process_or_nothing_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    env.apply({"RANK": 0, "WORLD_SIZE": None})
    assert env.RANK.get() == 0
    assert not env.WORLD_SIZE.is_set()
    with pytest.raises(env.EnvironmentVariableError, match="WORLD_SIZE"):
        env.apply({"RANK": 1, "WORLD_SIZE": 0})
    assert env.RANK.get() == 0


def test_every_variable_is_described() -> None:
    for name, variable in env.REGISTRY.items():
        assert getattr(env, name) is variable
        assert variable.name == name
        assert variable.category in (env.RUN, env.BUILD)
        assert variable.meaning.endswith(".")
        assert variable.owner
        assert variable.default
        assert variable.allowed
    assert {v.name for v in env.variables(env.BUILD)} >= {"LLVM_SYSPATH", "MAX_JOBS"}
    assert {v.name for v in env.variables(env.RUN)} >= {"TRITON_DIST_BACKEND", "SHMEM_UID_SESSION_ID"}


def test_import_brings_no_other_module() -> None:
    """It is imported at interpreter start, where each module costs every Python program of the user."""
    program = (
        f"import os, sys, __future__; sys.path.insert(0, {str(PYTHON_DIRECTORY)!r}); before = set(sys.modules); "
        "import triton_dist.env; print(*sorted(set(sys.modules) - before))"
    )
    result = subprocess.run([sys.executable, "-S", "-c", program], check=True, capture_output=True, text=True)
    assert result.stdout.split() == ["triton_dist", "triton_dist.env"]
