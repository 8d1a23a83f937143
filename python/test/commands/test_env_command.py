"""`python -m triton_dist env`: what it lists, explains and finds, in each form, and its exit codes."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from _build_backend import checkout
from triton_dist import commands, env
from triton_dist.commands.env import near

FAMILIES = ("TRITON_", "SHMEM_", "HCCL_", "ASCEND_", "MLIR_", "LLVM_")

# Names that programs of the Ascend stack, triton or LLVM really read, and that are no variables of ours.
NAMES_OF_OTHERS = """
    TRITON_F32_DEFAULT TRITON_CACHE_MANAGER TRITON_REDIS_HOST TRITON_REDIS_PORT TRITON_REDIS_KEY_FORMAT
    TRITON_CUDART_PATH TRITON_LIBDEVICE_PATH TRITON_PTXAS_PATH TRITON_FRONT_END_DEBUGGING TRITON_GRID_WARN_PRINT
    TRITON_REGISTER_TENSOR_MSPROF TRITON_MEMORY_DISPLAY TRITON_DISABLE_PRECOMPILE TRITON_STORE_BINARY_ONLY
    TRITON_ENABLE_PYTHON_STACKTRACE TRITON_DISABLE_RESHAPE_ENCODING_INFERENCE TRITON_CODEGEN_BACKENDS
    SHMEM_SYMMETRIC_SIZE SHMEM_TLS_DISABLE SHMEM_DEBUG SHMEM_INFO SHMEM_VERSION
    HCCL_IF_IP HCCL_SOCKET_IFNAME HCCL_SOCKET_FAMILY HCCL_WHITELIST_DISABLE HCCL_WHITELIST_FILE HCCL_ALGO
    HCCL_BUFFSIZE HCCL_RDMA_TIMEOUT HCCL_RDMA_RETRY_CNT HCCL_RDMA_QPS_PER_CONNECTION HCCL_RDMA_QP_PORT_CONFIG_PATH
    HCCL_OP_EXPANSION_MODE HCCL_INTRA_ROCE_ENABLE HCCL_INTRA_PCIE_ENABLE HCCL_DETERMINISTIC HCCL_ENTRY_LOG_ENABLE
    HCCL_MULTI_QP_THRESHOLD HCCL_DEBUG HCCL_OP_RETRY_ENABLE HCCL_DIAGNOSE_ENABLE HCCL_LOGIC_SUPERPOD_ID
    ASCEND_AICPU_PATH ASCEND_GLOBAL_EVENT_ENABLE ASCEND_MODULE_LOG_LEVEL ASCEND_HOST_LOG_FILE_NUM
    ASCEND_LOG_DEVICE_FLUSH_TIMEOUT ASCEND_DEVICE_ID ASCEND_WORK_PATH ASCEND_CACHE_PATH ASCEND_LAUNCH_BLOCKING
    ASCEND_RUNTIME_OPTIONS ASCEND_RUNTIME_MOUNTS ASCEND_ALLOW_LINK ASCEND_VNPU_SPECS ASCEND_DRIVER_PATH
    ASCEND_CUSTOM_OPP_PATH ASCEND_MAX_OP_CACHE_SIZE ASCEND_ENGINE_PATH ASCEND_COREDUMP_SIGNAL
    MLIR_ENABLE_DIAGNOSTICS MLIR_ROOT LLVM_ROOT LLVM_DIR LLVM_INSTALL_PREFIX LLVM_PROFILE_FILE LLVM_SYMBOLIZER_PATH
    LLVM_PASS_PLUGIN_PATH LLVM_DISABLE_SYMBOLIZATION LLVM_CONFIG LLVM_BUILD_DIR
"""


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name in env.REGISTRY or name.startswith(FAMILIES):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TRITON_DIST_BACKEND", "sim")


Run = tuple[int, str, str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*arguments: str) -> Run:
        try:
            code = commands.main(["env", *arguments])
        except SystemExit as end:
            code = int(str(end.code))
        output = capsys.readouterr()
        return code, output.out, output.err

    return call


def findings(run: Any, *arguments: str) -> list[dict[str, Any]]:
    code, output, _ = run("--check", "--json", *arguments)
    found: list[dict[str, Any]] = json.loads(output)["findings"]
    assert code == bool(found)
    return found


# -------------------------------------------------------------------------------------------------- lists


def test_the_list_has_value_source_and_meaning(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DIST_SIM_NPUS", "4")
    monkeypatch.setenv("HCCL_RDMA_SL", "9")
    code, output, _ = run()
    assert code == 0
    lines = {line.split()[0]: line for line in output.splitlines() if line.startswith("  ") and line[2] != " "}
    assert set(lines) == set(env.REGISTRY)
    assert re.search(r"TRITON_DIST_SIM_NPUS +4 +process environment +How many simulated", lines["TRITON_DIST_SIM_NPUS"])
    assert re.search(r"TRITON_DIST_HEAP_TIMEOUT +\(60\) +default +How long", lines["TRITON_DIST_HEAP_TIMEOUT"])
    assert "HCCL_RDMA_SL='9' is not allowed" in output
    assert "\x1b" not in output


def test_only_what_is_set(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAX_JOBS", "3")
    _, output, _ = run("--set")
    assert {name for name in env.REGISTRY if re.search(rf"\b{name} ", output)} == {"TRITON_DIST_BACKEND", "MAX_JOBS"}
    _, output, _ = run("--set", "--json")
    assert {v["name"] for v in json.loads(output)["variables"]} == {"TRITON_DIST_BACKEND", "MAX_JOBS"}


def test_json_has_every_variable_in_full(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHMEM_LOG_LEVEL", "loud")
    code, output, _ = run("--json")
    assert code == 0
    variables = {v["name"]: v for v in json.loads(output)["variables"]}
    assert set(variables) == set(env.REGISTRY)
    for described in variables.values():
        assert set(described) == {
            *("name", "owner", "category", "type", "default", "allowed", "meaning", "since", "acts_on", "note"),
            *("initialisation", "value", "source", "error"),
        }
    assert variables["SHMEM_LOG_LEVEL"]["value"] == "loud"
    assert "one of DEBUG" in variables["SHMEM_LOG_LEVEL"]["error"]
    assert variables["MAX_JOBS"]["value"] is None
    assert variables["MAX_JOBS"]["source"] == "default"


def test_what_a_lease_has_set_is_said_to_come_from_it(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DIST_SIM_NPUS", "2")
    monkeypatch.setenv("MASTER_PORT", "29500")

    def sources() -> dict[str, str]:
        return {v["name"]: v["source"] for v in json.loads(run("--json", "--set")[1])["variables"]}

    assert set(sources().values()) == {"process environment"}
    monkeypatch.setenv("TRITON_DIST_SESSION", "a lease")
    monkeypatch.setenv("TRITON_DIST_MASTER_PORT", "29500")
    assert sources() == {
        "TRITON_DIST_BACKEND": "process environment",
        **dict.fromkeys(
            ("TRITON_DIST_SESSION", "TRITON_DIST_MASTER_PORT", "TRITON_DIST_SIM_NPUS", "MASTER_PORT"), "lease"
        ),
    }
    monkeypatch.setenv("MASTER_PORT", "29501")
    assert sources()["MASTER_PORT"] == "process environment"


def test_a_secret_is_shown_nowhere(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DIST_JOB_SECRET", "hunter2")
    for arguments in ((), ("--json",), ("--markdown",), ("--check",), ("explain", "TRITON_DIST_JOB_SECRET")):
        _, output, errors = run(*arguments)
        assert "hunter2" not in output + errors
    assert "(not shown)" in output


def test_markdown_is_a_table_of_each_category(run: Any) -> None:
    code, output, _ = run("--markdown")
    assert code == 0
    assert re.findall(r"^## (.*)$", output, re.MULTILINE) == ["Run time", "Build time"]
    rows = [line for line in output.splitlines() if line.startswith("|")]
    assert set(re.findall(r"^\| `(\w+)` \|", output, re.MULTILINE)) == set(env.REGISTRY)
    assert {len(re.split(r"(?<!\\)\|", row)) for row in rows} == {10}


# ------------------------------------------------------------------------------------------------ explain


def test_explain_says_everything(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHMEM_UID_SESSION_ID", "localhost:8888")
    code, output, _ = run("explain", "SHMEM_UID_SESSION_ID")
    assert code == 0
    for part in ("localhost:8888  (process environment)", "[ipv6%scope]:port", "aclshmem", "both", "by unique id."):
        assert part in output
    code, output, _ = run("explain", "SHMEM_UID_SESSION_ID", "--json")
    assert (code, json.loads(output)["value"]) == (0, "localhost:8888")


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("SHMEM_UID_SESION_ID", "SHMEM_UID_SESSION_ID"), ("shmem_log", "SHMEM_LOG_PATH"), ("MAXJOBS", "MAX_JOBS")],
)
def test_explain_knows_what_was_meant(run: Any, asked: str, meant: str) -> None:
    code, output, errors = run("explain", asked)
    assert (code, output) == (2, "")
    assert errors.startswith(f"{asked} is not a variable that is known here: did you mean ")
    assert meant in errors


def test_explain_of_something_else(run: Any) -> None:
    assert run("explain", "QQQQ") == (2, "", "QQQQ is not a variable that is known here\n")


# -------------------------------------------------------------------------------------------------- check


def test_nothing_wrong(run: Any) -> None:
    code, output, _ = run("--check")
    assert code == 0
    assert output == "checked 1 variable for simulated NPUs: nothing found\n"
    assert findings(run) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TRITON_DIST_BACKEND", "cuda"),
        ("TRITON_DIST_SIM_SOC", "Ascend910B33"),
        ("TRITON_ASCEND_ARCH", "Ascend910"),
        ("SHMEM_UID_SESSION_ID", "127.0.0.1"),
        ("SHMEM_UID_SOCK_IFNAME", "eth0:ipv4"),
        ("SHMEM_UID_SOCK_IFNAM", "10.0.0.1:1234"),
        ("SHMEM_INSTANCE_PORT_RANGE", "5:4"),
        ("SHMEM_LOG_LEVEL", "TRACE"),
        ("SHMEM_LOG_TO_STDOUT", "yes"),
        ("HCCL_RDMA_TC", "1"),
        ("HCCL_RDMA_SL", "8"),
        ("TRITON_ALWAYS_COMPILE", "true"),
        ("MAX_JOBS", "0"),
        ("TRITON_BUILD_PROTON", "maybe"),
    ],
)
def test_a_bad_value_is_an_error(run: Any, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    found = [each for each in findings(run) if each["severity"] == "error"]
    assert [(each["kind"], each["names"]) for each in found] == [("bad value", [name])]
    assert name in found[0]["message"]
    assert value in found[0]["message"]
    assert run("--check", "--allow-hints")[0] == 1


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("SHMEM_UID_SESION_ID", "SHMEM_UID_SESSION_ID"),
        ("SHMEM_UID_SESSIONID", "SHMEM_UID_SESSION_ID"),
        ("SHMEM_UID_SOCK_IFNAEM", "SHMEM_UID_SOCK_IFNAME"),
        ("SHMEM_LOG_STDOUT", "SHMEM_LOG_TO_STDOUT"),
        ("TRITON_ALLWAYS_COMPILE", "TRITON_ALWAYS_COMPILE"),
        ("TRITON_DIST_BACKENDS", "TRITON_DIST_BACKEND"),
        ("HCCL_CONECT_TIMEOUT", "HCCL_CONNECT_TIMEOUT"),
        ("ASCEND_RT_VISIBLE_DEVICE", "ASCEND_RT_VISIBLE_DEVICES"),
        ("MLIR_ENABLE_DUMPS", "MLIR_ENABLE_DUMP"),
        ("LLVM_SYS_PATH", "LLVM_SYSPATH"),
        ("TORCH_DEVICE_BACKEND_AUTOLAOD", "TORCH_DEVICE_BACKEND_AUTOLOAD"),
        ("REL_WITH_DEBINFO", "REL_WITH_DEB_INFO"),
    ],
)
def test_a_typo_is_a_hint(run: Any, monkeypatch: pytest.MonkeyPatch, written: str, meant: str) -> None:
    monkeypatch.setenv(written, "1")
    (found,) = findings(run)
    assert (found["severity"], found["kind"], found["names"]) == ("hint", "typo", [written])
    assert f"did you mean {meant}?" in found["message"]
    assert run("--check", "--allow-hints")[0] == 0


def test_names_that_others_have_are_no_typos(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*NAMES_OF_OTHERS.split(), "PATHS", "SHMEMM_UID_SESSION_ID", "MASTER_ADDRESS", "HOME_PATH"]:
        monkeypatch.setenv(name, "1")
    assert findings(run) == []


@given(st.data())
def test_one_wrong_letter_in_a_long_name_is_recognised(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([name for name in env.REGISTRY if len(name) >= 14]))
    place = data.draw(st.integers(0, len(name) - 1))
    other = data.draw(st.sampled_from([letter for letter in "ABXYZ_" if letter != name[place]]))
    written = data.draw(
        st.sampled_from(
            [
                name[:place] + other + name[place + 1 :],
                name[:place] + name[place + 1 :],
                name[:place] + other + name[place:],
            ]
        )
    )
    # Some names of the registry are one letter apart themselves.
    if written not in env.REGISTRY:
        assert near.likely_meant(written, env.REGISTRY) is not None


@pytest.mark.parametrize(
    ("variables", "names", "says"),
    [
        (
            {"SHMEM_UID_SESSION_ID": "localhost:1", "SHMEM_UID_SOCK_IFNAME": "eth0"},
            ["SHMEM_UID_SESSION_ID", "SHMEM_UID_SOCK_IFNAME"],
            "SHMEM_UID_SESSION_ID wins",
        ),
        (
            {"SHMEM_UID_SOCK_IFNAM": "eth0", "SHMEM_UID_SOCK_IFNAME": "eth1"},
            ["SHMEM_UID_SOCK_IFNAME", "SHMEM_UID_SOCK_IFNAM"],
            "SHMEM_UID_SOCK_IFNAME wins",
        ),
        ({"SHMEM_UID_SOCK_IFNAM": "eth0"}, ["SHMEM_UID_SOCK_IFNAM"], "the old spelling"),
        (
            {"TRITON_DIST_SESSION": "lease", "SHMEM_UID_SESSION_ID": "localhost:1"},
            ["TRITON_DIST_SESSION", "SHMEM_UID_SESSION_ID"],
            "the lease's session wins",
        ),
        (
            {"SHMEM_LOG_TO_STDOUT": "1", "SHMEM_LOG_PATH": "/tmp"},
            ["SHMEM_LOG_TO_STDOUT", "SHMEM_LOG_PATH"],
            "no file is written",
        ),
        ({"TRITON_DUMP_DIR": "/tmp"}, ["TRITON_DUMP_DIR"], "without TRITON_KERNEL_DUMP=1"),
        ({"TRITON_OVERRIDE_DIR": "/tmp"}, ["TRITON_OVERRIDE_DIR"], "without TRITON_KERNEL_OVERRIDE=1"),
        (
            {"TRITON_KERNEL_OVERRIDE": "1", "TRITON_HOME": "/nowhere"},
            ["TRITON_KERNEL_OVERRIDE"],
            "no directory /nowhere/.triton/override",
        ),
        (
            {"TRITON_INTERPRET": "1", "TRITON_COMPILE_ONLY": "1"},
            ["TRITON_INTERPRET", "TRITON_COMPILE_ONLY"],
            "the interpreter compiles nothing",
        ),
        (
            {"TRITON_ASCEND_ARCH": "Ascend910B1", "TRITON_DIST_SIM_SOC": "Ascend910B2"},
            ["TRITON_ASCEND_ARCH", "TRITON_DIST_SIM_SOC"],
            "compiled for Ascend910B1 and run on Ascend910B2",
        ),
        ({"RANK": "2", "WORLD_SIZE": "2"}, ["RANK", "WORLD_SIZE"], "no number 2 among 2 ranks"),
        (
            {"LOCAL_RANK": "4", "LOCAL_WORLD_SIZE": "4"},
            ["LOCAL_RANK", "LOCAL_WORLD_SIZE"],
            "no number 4 among 4 ranks on this host",
        ),
        (
            {"SHMEM_CYCLE_PROF_PE": "8", "WORLD_SIZE": "8"},
            ["SHMEM_CYCLE_PROF_PE", "WORLD_SIZE"],
            "no number 8 among 8 PEs",
        ),
        (
            {"LOCAL_WORLD_SIZE": "4", "WORLD_SIZE": "2"},
            ["LOCAL_WORLD_SIZE", "WORLD_SIZE"],
            "more ranks on this host than in the job",
        ),
    ],
)
def test_a_contradiction_is_a_hint(
    run: Any, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], names: list[str], says: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found = [each for each in findings(run) if each["kind"] == "contradiction"]
    (the,) = [each for each in found if each["names"] == names]
    assert the["severity"] == "hint"
    assert says in the["message"]


@pytest.mark.parametrize(
    "variables",
    [
        {"SHMEM_LOG_TO_STDOUT": "0", "SHMEM_LOG_PATH": "/tmp"},
        {"TRITON_DUMP_DIR": "/tmp", "TRITON_KERNEL_DUMP": "1"},
        {"TRITON_OVERRIDE_DIR": "/", "TRITON_KERNEL_OVERRIDE": "1"},
        {"TRITON_INTERPRET": "1", "TRITON_COMPILE_ONLY": "0"},
        {"TRITON_ASCEND_ARCH": "Ascend910B1", "TRITON_DIST_SIM_SOC": "Ascend910B1"},
        {"RANK": "1", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "WORLD_SIZE": "2", "SHMEM_CYCLE_PROF_PE": "1"},
    ],
)
def test_what_goes_together(run: Any, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert [each for each in findings(run) if each["kind"] != "no effect"] == []


def test_the_simulator_has_fewer_socs_than_there_are(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_ASCEND_ARCH", "Ascend310B1")
    assert findings(run, "--backend", "ascend") == []
    (found,) = findings(run, "--backend", "sim")
    assert found["kind"] == "bad value"


def test_two_build_types_are_an_error(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBUG", "1")
    monkeypatch.setenv("REL_WITH_DEB_INFO", "on")
    (found,) = findings(run)
    assert (found["severity"], found["names"]) == ("error", ["DEBUG", "REL_WITH_DEB_INFO"])
    monkeypatch.setenv("DEBUG", "0")
    assert findings(run) == []


def test_contradictions_of_hccl(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HCCL_IF_BASE_PORT", "50000")
    monkeypatch.setenv("HCCL_HOST_SOCKET_PORT_RANGE", "auto")
    (found,) = findings(run, "--backend", "ascend")
    assert "HCCL_HOST_SOCKET_PORT_RANGE wins" in found["message"]


@pytest.mark.parametrize(
    ("ports", "ip_port", "severity", "says"),
    [
        ("1024:2047", "tcp://[::1]:8666", "hint", "tcp://[::1]:8666 names one: it is not used"),
        (None, "tcp://10.0.0.1:0", "error", "it is not set, and the port 0 of tcp://10.0.0.1:0 stands for one of it"),
        ("1024:2047", "tcp://10.0.0.1:0", None, ""),
        (None, "tcp6://[::1]:8666", None, ""),
    ],
)
def test_port_0_and_the_port_range_need_each_other(
    run: Any, monkeypatch: pytest.MonkeyPatch, ports: str | None, ip_port: str, severity: str | None, says: str
) -> None:
    if ports is not None:
        monkeypatch.setenv("SHMEM_INSTANCE_PORT_RANGE", ports)
    found = [each for each in findings(run, "--ip-port", ip_port) if each["kind"] == "contradiction"]
    assert [each["severity"] for each in found] == ([] if severity is None else [severity])
    assert all(says in each["message"] for each in found)


@pytest.mark.parametrize(
    ("name", "value", "arguments", "says"),
    [
        ("HCCL_CONNECT_TIMEOUT", "200", ("--backend", "sim"), "no effect on simulated NPUs: On simulated NPUs backend"),
        ("TRITON_DIST_SIM_NPUS", "2", ("--backend", "ascend"), "no effect on Ascend NPUs"),
        ("SHMEM_UID_SESSION_ID", "localhost:1", ("--init", "ip-port"), "initialises with an ip_port"),
        ("SHMEM_UID_SOCK_IFNAME", "eth0", ("--ip-port", "tcp://10.0.0.1:1"), "initialises with an ip_port"),
        ("SHMEM_INSTANCE_PORT_RANGE", "1:2", ("--init", "uid"), "initialises by unique id"),
        ("TRITON_BUILD_PROTON", "off", (), "no counterpart here: Proton"),
    ],
)
def test_no_effect_is_a_hint(
    run: Any, monkeypatch: pytest.MonkeyPatch, name: str, value: str, arguments: tuple[str, ...], says: str
) -> None:
    monkeypatch.setenv(name, value)
    (found,) = findings(run, *arguments)
    assert (found["severity"], found["kind"], found["names"]) == ("hint", "no effect", [name])
    assert says in found["message"]


def test_variables_with_one_reason_share_a_line(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ASCEND_HOME_PATH", "ASCEND_OPP_PATH", "ASCEND_TOOLKIT_HOME"):
        monkeypatch.setenv(name, "/usr/local/Ascend")
    (found,) = findings(run)
    assert found["names"] == ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH"]


def test_errors_come_first_and_in_words(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHMEM_UID_SESION_ID", "x")
    monkeypatch.setenv("DEBUG", "1")
    monkeypatch.setenv("REL_WITH_DEB_INFO", "1")
    code, output, _ = run("--check")
    assert code == 1
    assert [line.split()[0] for line in output.splitlines()] == ["error", "hint", "checked"]
    assert "\x1b" not in output


# -------------------------------------------------------------------------------------------------- usage


@pytest.mark.parametrize(
    "arguments",
    [
        ("explain",),
        ("--explain", "RANK"),
        ("explain", "RANK", "--check"),
        ("--check", "--markdown"),
        ("--json", "--markdown"),
        ("--backend", "sim"),
        ("--check", "--backend", "cuda"),
        ("--check", "--init", "mpi"),
        ("--check", "--init", "uid", "--ip-port", "tcp://1.2.3.4:0"),
        ("--check", "--ip-port", "1.2.3.4:0"),
        ("--check", "--ip-port", "udp://1.2.3.4:0"),
        ("--check", "--ip-port", "tcp://1.2.3.4"),
    ],
)
def test_wrong_usage(run: Any, arguments: tuple[str, ...]) -> None:
    code, output, errors = run(*arguments)
    assert (code, output) == (2, "")
    assert "error:" in errors


def test_help_names_the_exit_codes_and_its_examples_run(run: Any) -> None:
    code, output, _ = run("--help")
    assert code == 0
    assert re.findall(r"^  (\d)  ", output, re.MULTILINE) == ["0", "1", "2"]
    examples = re.findall(r"^  python -m triton_dist env(.*?)(?:  |$)", output, re.MULTILINE)
    assert len(examples) == 8
    for example in examples:
        assert run(*example.split())[0] == 0, example


def test_an_output_that_is_full_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "triton_dist", "env"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "python -m triton_dist: what it has to say cannot be written: No space left on device\n"


def test_the_multi_rank_session_checks_before_it_tests() -> None:
    sessions = {
        node.name: node
        for node in ast.parse((checkout.ROOT / "noxfile.py").read_text()).body
        if isinstance(node, ast.FunctionDef)
    }
    calls = [
        node.func.attr
        for node in ast.walk(sessions["test_multirank"])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]
    assert calls.index("examine") < calls.index("run")


def test_an_unknown_command() -> None:
    with pytest.raises(SystemExit) as end:
        commands.main(["environment"])
    assert end.value.code == 2


def test_as_a_program_it_imports_neither_torch_nor_triton(tmp_path: Path) -> None:
    program = "import sys; from triton_dist import commands; commands.main(['env', '--check']); print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", program], env=env.child_environ(), check=True, capture_output=True, text=True
    )
    assert not {"torch", "triton", "numpy", "pytest"} & set(result.stdout.split())
    result = subprocess.run(
        [sys.executable, "-m", "triton_dist", "env", "--check", "--json"],
        env=env.child_environ(TRITON_DIST_SIM_NPU="3"),
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert "did you mean TRITON_DIST_SIM_NPUS?" in result.stdout


def test_colours_are_for_terminals() -> None:
    here, there = os.openpty()
    command = [sys.executable, "-m", "triton_dist", "env", "--set"]
    result = subprocess.run(command, env=env.child_environ(RANK=0), stdout=there, check=True)
    os.close(there)
    assert result.returncode == 0
    assert b"\x1b[1mrun time" in os.read(here, 1000)
    os.close(here)


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "triton_dist", "env", "--json"],
        env=env.child_environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.close()
        assert program.stderr.read() == b""
    assert program.returncode == 141


@pytest.mark.parametrize("arguments", [("env",), ("env", "--check"), ("env", "--help"), ("env", "explain", "RANK")])
@pytest.mark.parametrize("encoding", ["ascii", "utf-8:strict"])
def test_every_terminal_can_show_it(arguments: tuple[str, ...], encoding: str) -> None:
    values = {"SHMEM_LOG_LEVEL": b"\xff", "SHMEM_LOG_PATH": b"/tmp/\xc3", "SHMEM_UID_SESSION_ID": "é:1".encode()}
    environ = os.environb | {name.encode(): value for name, value in values.items()}
    ran = subprocess.run(
        [sys.executable, "-m", "triton_dist", *arguments],
        env={**environ, b"PYTHONIOENCODING": encoding.encode()},
        capture_output=True,
    )
    assert (ran.returncode, ran.stderr) == (int(arguments == ("env", "--check")), b"")


def test_closed_standard_output_is_no_error() -> None:
    ran = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "triton_dist", "env"], capture_output=True
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
