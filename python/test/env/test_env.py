"""The registry of environment variables: values, defaults, refusals, and its cost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from triton_dist import env

PYTHON_DIRECTORY = Path(env.__file__).parents[2]


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


def test_a_default_may_lie_below_another_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_DUMP_DIR", raising=False)
    monkeypatch.setenv("TRITON_HOME", "/somewhere")
    assert env.TRITON_DUMP_DIR.get() == Path("/somewhere/.triton/dump")
    assert env.TRITON_DUMP_DIR.default == "${TRITON_HOME}/.triton/dump"


@pytest.mark.parametrize(
    ("text", "devices"), [("0", (0,)), ("0-2,5", (0, 1, 2, 5)), ("Ascend910-0,Ascend910-3", (0, 3))]
)
def test_forms_of_a_containers_devices(monkeypatch: pytest.MonkeyPatch, text: str, devices: tuple[int, ...]) -> None:
    monkeypatch.setenv("ASCEND_VISIBLE_DEVICES", text)
    assert env.ASCEND_VISIBLE_DEVICES.get() == devices


@pytest.mark.parametrize("word", ["debug", "DEBUG", "Debug"])
def test_a_choice_is_spelled_as_its_owner_does(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv("SHMEM_LOG_LEVEL", word)
    assert env.SHMEM_LOG_LEVEL.get() == "DEBUG"


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
        ("TRITON_DIST_SIM_NPUS", "1_0", "integer"),
        ("TRITON_DIST_SIM_NPUS", "１２", "integer"),
        ("TRITON_DIST_HEAP_TIMEOUT", "1_0", "greater than 0"),
        ("ASCEND_RT_VISIBLE_DEVICES", "1,1", "different integers"),
        ("ASCEND_RT_VISIBLE_DEVICES", "1, 2", "different integers"),
        ("ASCEND_RT_VISIBLE_DEVICES", "1,", "different integers"),
        ("ASCEND_VISIBLE_DEVICES", "Ascend910", "ranges of them"),
        ("ASCEND_VISIBLE_DEVICES", "2-0", "ranges of them"),
        ("HCCL_RDMA_TC", "130", "from 0 to 255 that is a multiple of 4"),
        ("HCCL_RDMA_TC", "256", "from 0 to 255 that is a multiple of 4"),
        ("HCCL_RDMA_SL", "8", "from 0 to 7"),
        ("HCCL_CONNECT_TIMEOUT", "119", "from 120 to 7200"),
        ("HCCL_HOST_SOCKET_PORT_RANGE", "60000-60050,60050", "do not overlap"),
        ("HCCL_NPU_SOCKET_PORT_RANGE", "60050-60000", "do not overlap"),
        ("SHMEM_LOG_LEVEL", "VERBOSE", "DEBUG, INFO, WARN, ERROR, FATAL"),
        ("SHMEM_LOG_TO_STDOUT", "yes", "1 or OFF 0 NO FALSE N"),
        ("SHMEM_UID_SESSION_ID", "127.0.0.1", "no :port at its end"),
        ("SHMEM_UID_SESSION_ID", "fe80::1:1234", "[ipv6]:port"),
        ("SHMEM_UID_SOCK_IFNAME", "eth0:inet5", "inet4 or inet6"),
        ("SHMEM_UID_SOCK_IFNAME", "127.0.0.1:1234", "SHMEM_UID_SESSION_ID"),
        ("SHMEM_INSTANCE_PORT_RANGE", "2047:1024", "before its start"),
        ("SHMEM_INSTANCE_PORT_RANGE", "1024-2047", "start:end"),
        ("SHMEM_CYCLE_PROF_PE", "-1", "of 0 or more"),
        ("TRITON_DEBUG", "yes", "1 or OFF 0 NO FALSE N"),
        ("TRITON_COMPILE_ONLY", "on", "1 TRUE or"),
        ("MLIR_ENABLE_TIMING", "yes", "1 TRUE ON or"),
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


def test_replace_leaves_nothing_else_or_changes_nothing() -> None:
    program = (
        "import os; from triton_dist import env\n"
        "try: env.replace({'RANK': '-1'})\n"
        "except env.EnvironmentVariableError: print('HOME' in os.environ)\n"
        "env.replace({'RANK': '1'}); print(dict(os.environ))\n"
    )
    result = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert result.stdout.splitlines() == ["True", "{'RANK': '1'}"]


def test_every_variable_is_described() -> None:
    for name, variable in env.REGISTRY.items():
        assert getattr(env, name) is variable
        assert variable.name == name
        assert variable.category in (env.RUN, env.BUILD)
        assert variable.meaning.endswith(".")
        assert variable.owner
        assert variable.default
        assert variable.allowed
        assert variable.since
        assert variable.acts_on in (env.SIMULATED, env.HARDWARE, env.BOTH, env.NOTHING)
        assert variable.initialisation in (None, env.IP_PORT, env.UNIQUE_ID)
        # What does not act on simulated NPUs says why.
        assert variable.note or variable.acts_on in (env.SIMULATED, env.BOTH), name
        variable.parse("")
    assert {v.name for v in env.variables(env.BUILD)} >= {"LLVM_SYSPATH", "MAX_JOBS"}
    assert {v.name for v in env.variables(env.RUN)} >= {"TRITON_DIST_BACKEND", "SHMEM_UID_SESSION_ID"}


def test_import_brings_no_other_module() -> None:
    """It is imported at interpreter start, where each module costs every Python program of the user."""
    program = (
        f"import os, sys, __future__; sys.path.insert(0, {str(PYTHON_DIRECTORY)!r}); before = set(sys.modules); "
        "import triton_dist.env; print(*sorted(set(sys.modules) - before))"
    )
    result = subprocess.run([sys.executable, "-S", "-c", program], check=True, capture_output=True, text=True)
    assert [name for name in result.stdout.split() if not name.startswith("triton_dist.env.")] == [
        "triton_dist",
        "triton_dist.env",
    ]
    assert "triton_dist.env.addresses" not in result.stdout.split()
