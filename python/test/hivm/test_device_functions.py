"""Every device function that the lowering may call is in AscendNPU-IR's template or in csrc/device, and not in both."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from triton_dist.runtime import native

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEVICE = Path(__file__).parents[3] / "csrc" / "device"
SOCS = ["Ascend910B3", "Ascend910_9392", "Ascend950PR_9589"]
ELEMENTS = ["f16", "bf16", "f32", "i8", "i16", "i32", "i64"]
COPIES = ["putmem", "putmem_nbi", "getmem", "getmem_nbi", "putmem_signal", "putmem_signal_nbi"]


def template() -> set[str]:
    """Names of the functions in the template, as AscendNPU-IR links them."""
    names: set[str] = set()
    for family in tomllib.loads((DEVICE / "template_symbols.toml").read_text())["functions"]:
        for name, type_, rank in itertools.product(
            family["names"], family.get("types", [""]), family.get("ranks", [""])
        ):
            names.add("_mlir_ciface_" + name.format(type=type_, rank=rank))
    return names


def own() -> set[str]:
    """Names of the functions in csrc/device."""
    text = "".join(path.read_text() for path in DEVICE.glob("*.cpp"))
    return set(re.findall(r"^(?:[\w() ]+ )?(tdist_\w+|_mlir_ciface_\w+)\(", text, re.MULTILINE))


class Body:
    """The operations of a kernel, as MLIR in generic form."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, operation: str) -> str:
        """Append an operation with one result; the name of the result."""
        self.lines.append(f"%v{len(self.lines)} = {operation}")
        return f"%v{len(self.lines) - 1}"

    def call(self, symbol: str, *operands: str, types: str, result: str = "i32") -> str:
        """Append a call of the front end's; the name of its result."""
        return self.add(
            f'"tt.extern_elementwise"({", ".join(operands)}) <{{libname = "tdist", libpath = "", pure = false, '
            f'symbol = "tdist_{symbol}"}}> : ({types}) -> {result}'
        )

    def address(self, memref: str, type_: str) -> str:
        pointer = self.add(f"memref.extract_aligned_pointer_as_index {memref} : {type_} -> index")
        return self.add(f"arith.index_cast {pointer} : index to i64")

    def view(self, element: str, offset: str) -> None:
        index = self.add(f"arith.index_cast {offset} : i64 to index")
        self.add(
            f"memref.reinterpret_cast %{element} to offset: [{index}], sizes: [1], strides: [1] : "
            f"memref<?x{element}> to memref<1x{element}, strided<[1], offset: ?>>"
        )


def every_call(soc: str) -> str:
    """A kernel with each of the language's operations, for each type of elements where that matters."""
    body = Body()
    set_, add = body.add("arith.constant 1 : i32"), body.add("arith.constant 2 : i32")
    addresses = {element: body.address(f"%{element}", f"memref<?x{element}>") for element in ELEMENTS}
    words = addresses["i32"]
    for element, at in addresses.items():
        for copy in COPIES:
            if "signal" in copy:
                body.call(copy, at, at, "%n", words, "%n", "%n", "%n", types="i64, i64, i32, i64, i32, i32, i32")
            else:
                body.call(copy, at, at, "%n", "%n", types="i64, i64, i32, i32")
        body.view(element, body.call("delta", at, "%n", "%n", types="i64, i32, i32", result="i64"))
        body.view(element, body.call("zero", "%n", types="i32", result="i64"))
    zero = body.call("zero", "%n", types="i32", result="i64")
    body.add(f'"test.use"({zero}) : (i64) -> i32')
    for width, value in (("i32", "%n"), ("i64", "%wide")):
        at = addresses[width]
        can_add = width == "i32" or soc.startswith("Ascend950")
        for op in [set_, add] if can_add else [set_]:
            body.call(f"notify_{width}", at, "%n", value, op, "%n", types=f"i64, i32, {width}, i32, i32")
        body.call(f"wait_{width}", at, "%n", value, "%n", "%n", types=f"i64, i32, {width}, i32, i32")
    body.call("signal_op", words, "%n", "%n", "%n", types="i64, i32, i32, i32")
    body.call("signal_wait_until", words, "%n", "%n", types="i64, i32, i32")
    body.call("int_p", words, "%n", "%n", types="i64, i32, i32")
    for name in ("my_pe", "n_pes", "team_my_pe", "team_n_pes", "barrier_all", "barrier_all_vec", "quiet", "fence"):
        body.call(name, "%n", types="i32")
    arguments = ", ".join(f"%{element}: memref<?x{element}>" for element in ELEMENTS)
    return "\n".join([f"func.func @kernel({arguments}, %n: i32, %wide: i64) {{", *body.lines, "return\n}"])


def lowered(soc: str) -> str:
    result = subprocess.run(
        [
            native.install_directory() / "bin" / "tdist-opt",
            "-",
            "--allow-unregistered-dialect",
            f"--tdist-lower-to-hivm=soc={soc}",
        ],
        input=every_call(soc),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("soc", SOCS)
def test_all_that_is_called_is_there(soc: str) -> None:
    text = lowered(soc)
    custom = {f"_mlir_ciface_{name}" for name in re.findall(r'symbol = "(\w+)"', text)}
    called = custom | set(re.findall(r"call @(\w+)\(", text))
    assert len(called) > 40
    assert called <= template() | own()
    if not soc.startswith("Ascend950"):
        assert called <= template()


def test_no_function_of_the_template_is_there_again() -> None:
    assert len(own()) == 6
    assert not own() & template()


# What the functions use of aclshmem's device headers, under their own names.
HEADERS: dict[str, str] = {
    "device/shmem_def.h": "#include <cstdint>\n#define __aicore__\n#define __gm__\n",
    "device/gm2gm/shmem_device_rma.h": "void *aclshmem_ptr(void *ptr, int pe);\n",
    "device/gm2gm/shmem_device_amo.h": "void aclshmem_int64_atomic_add(int64_t *dst, int64_t value, int32_t pe);\n",
    "device/gm2gm/shmem_device_p2p_sync.h": """
int32_t aclshmem_signal_wait_until(int32_t *sig_addr, int cmp, int32_t cmp_val);
void aclshmem_int32_wait_until(int32_t *ivar, int cmp, int32_t cmp_value);
void aclshmem_int64_wait_until(int64_t *ivar, int cmp, int64_t cmp_value);
""",
}


def test_the_functions_are_right_against_aclshmems_declarations(tmp_path: Path) -> None:
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler found: install g++")
    for name, text in HEADERS.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    sources: list[Any] = sorted(DEVICE.glob("*.cpp"))
    subprocess.run(
        [
            compiler,
            "-std=c++17",
            "-fsyntax-only",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-attributes",
            "-I",
            tmp_path,
            *sources,
        ],
        check=True,
    )
