"""Nothing but triton_dist.env reads or sets environment variables, and it promises no variable that nobody reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from _build_backend import checkout
from triton_dist import env

REGISTRY_DIRECTORY = Path(env.__file__).parent
PACKAGE = checkout.PYTHON_DIRECTORY / "triton_dist"
BUILD_SIDE = (checkout.PYTHON_DIRECTORY / "_build_backend", checkout.ROOT / "ci")

# Names of os (and posix below it) that read or set variables.
ACCESS = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv", "expandvars"}

# What the stock wheel of triton-ascend reads by itself, also where its front end compiles for simulated NPUs.
READ_BY_TRITON = {
    *("TRITON_CACHE_DIR", "TRITON_HOME", "TRITON_DUMP_DIR", "TRITON_OVERRIDE_DIR", "TRITON_KERNEL_DUMP"),
    *("TRITON_KERNEL_OVERRIDE", "TRITON_ALWAYS_COMPILE", "TRITON_DEBUG", "TRITON_INTERPRET", "TRITON_PRINT_AUTOTUNING"),
    *("TRITON_REPRODUCER_PATH", "TRITON_ENABLE_LLVM_DEBUG", "TRITON_LLVM_DEBUG_ONLY", "TRITON_DISABLE_LINE_INFO"),
    *("MLIR_ENABLE_DUMP", "MLIR_ENABLE_TIMING", "USE_IR_LOC", "TRITON_ASCEND_COMPILE_SPEED_OPT"),
    "TRITON_ALL_BLOCKS_PARALLEL",
}
# What torch, OpenMP and gloo read by themselves.
READ_BY_TORCH = {
    *("TORCH_DEVICE_BACKEND_AUTOLOAD", "MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK"),
    *("LOCAL_WORLD_SIZE", "OMP_NUM_THREADS", "GLOO_SOCKET_IFNAME"),
}


def sources(*directories: Path) -> Iterator[Path]:
    for directory in directories:
        yield from (path for path in directory.rglob("*.py") if REGISTRY_DIRECTORY not in path.parents)


def accesses(tree: ast.AST) -> Iterator[int]:
    """The lines on which code gets hold of the environment of its process."""
    modules = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name in ("os", "posix")
    }
    for node in ast.walk(tree):
        # A field that is called `environ`, of a task or a lease, is not the process's environment.
        of_module = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules
        if isinstance(node, ast.Attribute) and node.attr in ACCESS and (of_module or node.attr == "expandvars"):
            yield node.lineno
        if isinstance(node, ast.ImportFrom) and {alias.name for alias in node.names} & ACCESS:
            yield node.lineno
        # getattr(os, "environ") and the like.
        if isinstance(node, ast.Call) and any(isinstance(a, ast.Constant) and a.value in ACCESS for a in node.args):
            yield node.lineno


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.environ['A']",
        "import os as system\nsystem.getenv('A')",
        "from os import environ",
        "from os import getenv as get",
        "import os\ngetattr(os, 'environ')",
        "import posix\nposix.environ",
        "import os\nos.path.expandvars('$A')",
        "import os\nos.putenv('A', 'B')",
    ],
)
def test_each_road_to_the_environment_is_recognised(code: str) -> None:
    assert list(accesses(ast.parse(code)))


def test_no_python_outside_the_registry_reads_or_sets_a_variable() -> None:
    files = [*sources(PACKAGE, *BUILD_SIDE), checkout.ROOT / "noxfile.py"]
    assert len(files) > 100
    found = [
        f"{path.relative_to(checkout.ROOT)}:{line}" for path in files for line in accesses(ast.parse(path.read_text()))
    ]
    assert found == []


def test_a_field_of_that_name_is_something_else() -> None:
    assert list(accesses(ast.parse("import os\ntask.environ\nlease.environ()\nos.getpid()"))) == []


def test_no_native_code_reads_a_variable() -> None:
    files = [path for path in (checkout.ROOT / "csrc").rglob("*") if path.suffix in {".cpp", ".h", ".td", ".in"}]
    assert files
    for path in files:
        if "test" not in path.parts:
            assert not re.search(r"\b(secure_)?(getenv|setenv|putenv|environ)\b|GetEnv", path.read_text()), path


def used(*directories: Path) -> set[str]:
    """The variables that code under the directories asks the registry for."""
    text = "\n".join(path.read_text() for path in sources(*directories))
    return set(re.findall(r"\benv\.([A-Z][A-Z0-9_]+)\b", text))


def run_side() -> list[Path]:
    """Where the package reads variables in order to act on them: the command only shows them."""
    return [path for path in PACKAGE.iterdir() if path.is_dir() and path.name not in ("commands", "env")]


def test_what_is_said_to_act_on_simulated_npus_is_read() -> None:
    claimed = {v.name for v in env.variables(env.RUN) if v.acts_on in (env.SIMULATED, env.BOTH)}
    assert claimed - used(*run_side()) - READ_BY_TRITON - READ_BY_TORCH == set()


def test_what_is_said_to_act_on_the_build_is_read() -> None:
    claimed = {v.name for v in env.variables(env.BUILD) if v.acts_on != env.NOTHING}
    assert claimed - used(*BUILD_SIDE) == set()


def test_what_is_said_to_act_on_nothing_here_is_not_read() -> None:
    nothing = {v.name for v in env.REGISTRY.values() if v.acts_on == env.NOTHING}
    assert nothing & used(PACKAGE, *BUILD_SIDE) == set()
