"""docs/pipeline.md: the IR of the example kernels at each stage on the way to an NPU, as the tools make it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from triton_dist import env
from triton_dist.compiler.errors import KernelCompileError
from triton_dist.compiler.npu import tools

PATH = "docs/pipeline.md"

_ROOT = Path(__file__).resolve().parents[2]
_EXAMPLES = _ROOT / "python" / "test" / "seed" / "distributed_kernels.py"
_WITH_DATA = _ROOT / "python" / "triton_dist" / "commands" / "selftest" / "kernels.py"
_SIGNATURE = "*i64, i32"
_SOC = "Ascend910B3"
_LOCATION = re.compile(r' loc\((?:#loc\d*|"[^"]*":\d+:\d+|unknown)\)')
_FUNCTION_ATTRIBUTES = re.compile(r" attributes \{.*\} \{$")
_PARAMETER_ATTRIBUTES = re.compile(r" \{hacc\.[^}]*\}")


def render() -> str:
    """The whole page.

    Raises:
        KernelCompileError: the NPU's compiler is missing, or refuses a kernel.
    """
    tools.put_on_path()
    if env.TRITON_INTERPRET.get():
        env.apply({env.TRITON_INTERPRET.name: None})
    notify, wait = (_Kernel(_EXAMPLES, name, _SIGNATURE) for name in ("notify_kernel", "wait_kernel"))
    data = _Kernel(_WITH_DATA, "signal_after_data", None)
    return _PAGE.format(
        soc=_SOC,
        signature=_SIGNATURE,
        examples=_EXAMPLES.relative_to(_ROOT),
        notify_source=notify.source,
        wait_source=wait.source,
        data_source=data.source,
        notify_ttir=notify.stage("ttir"),
        notify_linalg=notify.stage("linalg"),
        wait_linalg=wait.stage("linalg"),
        notify_hivm=notify.stage("hivm"),
        wait_hivm=wait.stage("hivm"),
        notify_final=notify.stage("llvm"),
        wait_final=wait.stage("llvm"),
        data_linalg=data.stage("linalg"),
        data_hivm=data.stage("hivm"),
        data_final=data.stage("llvm"),
    )


class _Kernel:
    """A kernel, compiled for the page's SoC.

    Attributes:
        source: its text.
    """

    def __init__(self, file: Path, name: str, signature: str | None) -> None:
        # Triton is imported only where the compiler is there.
        from triton_dist.compiler.npu import choices, staging
        from triton_dist.compiler.npu.compilation import OK, compile_kernel

        (choice,) = choices.of_file(file, [name], signature, None, [], lambda text: None)
        result = compile_kernel(choices.request(choice, _SOC, staging.DEFAULT))
        if result.state != OK:
            raise KernelCompileError(f"{name} for {_SOC} is {result.state}: {result.message}")
        self.source = f"@triton.jit\n{choice.kernel.src.rstrip()}"
        self._name = name
        self._stages = result.stages

    def stage(self, name: str) -> str:
        """The kernel's function in the IR of a stage, without what the page says that it leaves out."""
        text = self._stages[name]
        text = _in_short_form(text) if name in ("hivm", "llvm") else _LOCATION.sub("", text)
        lines = text.splitlines()
        first = next(number for number, line in enumerate(lines) if "func" in line and f"@{self._name}(" in line)
        last = next(number for number in range(first, len(lines)) if lines[number].startswith("  }"))
        heading = _FUNCTION_ATTRIBUTES.sub(" attributes {…} {", _PARAMETER_ATTRIBUTES.sub("", lines[first]))
        return "\n".join(line.removeprefix("  ") for line in [heading, *lines[first + 1 : last + 1]])


def _in_short_form(text: str) -> str:
    """IR as bishengir-opt prints it: in the form of its own dialects, without locations."""
    printer = str(tools.compiler().with_name("bishengir-opt"))
    command = [printer, "--allow-unregistered-dialect"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise KernelCompileError(f"{printer} does not read the IR: {done.stderr.strip()[:500]}")
    return done.stdout


_PAGE = """\
<!-- Written by `nox -s generate` from the kernels below and the installed compilers. -->

# A kernel on its way to an NPU

Two kernels of the examples, in the IR of each stage up to what CANN's `hivmc` gets, for `{soc}`. One rank notifies:

```python
{notify_source}
```

Another waits:

```python
{wait_source}
```

The IR is what the tools print, without three things: locations in the source, functions other than the kernel's own,
and attributes of functions. This command prints a stage in full; `ttir`, `linalg`, `hivm` and `llvm` are its names:

```sh
python -m triton_dist compile {examples}::notify_kernel --signature '{signature}' --emit hivm
```

## Triton IR

Made by triton-ascend's front end, from the Python source. [language](../python/triton_dist/language) makes each
distributed operation a `tt.extern_elementwise` on scalars, which no later pass of the front end touches.

```mlir
{notify_ttir}
```

Look at `symbol`, which says which operation it is, and at `pure`: what has an effect is `false`, and stays at its place
in the program. A signal's address is passed as a number (`tt.ptr_to_int`), and so are the constants of `sig_op` and
`comm_scope`, behind rank and value.

## Linalg IR

Made by triton-ascend's `triton-adapter-opt`. Pointers have become memrefs. In front of the kernel's own parameters
stand two of the adapter's, locks and workspace; behind them are the sizes of the grid and the program's place in it.
Simulated NPUs and real ones part after this stage.

```mlir
{notify_linalg}
```

```mlir
{wait_linalg}
```

Look at the operations of the stage before: they are still there, in their order. `tdist_wait_i64` has the token as its
result, and `tdist_zero` is what `consume_token` adds to a pointer: a zero that depends on the token.

## HIVM

Made by this project: `tdist-opt --tdist-lower-to-hivm` turns each operation into a `hivm.hir.custom`, and leaves the
rest as it is. triton-ascend's backend runs it between the adapter and `bishengir-compile`.

```mlir
{notify_hivm}
```

```mlir
{wait_hivm}
```

Look at `symbol`, the device function of aclshmem; at what stands behind `ins`, the signal's memref in place of its
address; and at the `pipe_barrier` before the signal: whatever the program has stored is complete when the signal goes.
`hivm.tcore_type` says which core does it. A kernel without `tl.dot` runs on one vector core: its `sub_vec_id()` is 0.

## The IR that the last step gets

Made by `bishengir-compile`, which plans memory, puts in what orders the pipes, and ends with the pass
`convert-hivm-to-std`. `hivmc` makes the binary of it, and links the device library, which has the functions' bodies.

```mlir
{notify_final}
```

```mlir
{wait_final}
```

Look at the calls, and at the barrier, which is still in front of the signal's. `tdist-opt --tdist-check-signal-order`
looks for it here.

## Data, pointers and tokens

A kernel that stores into another rank's memory, signals it, and reads behind its own signal. It is one of those that
[`selftest`](ascend.md#on-a-host-with-npus) launches.

```python
{data_source}
```

In linalg IR `symm_at` is an offset that comes from `tdist_delta`, and `consume_token` one that comes from `tdist_zero`.
So the front end knows the shape of what is loaded and stored, as for every other pointer:

```mlir
{data_linalg}
```

The lowering takes both back: the views (`memref.reinterpret_cast`) are now of the memory that `aclshmem_ptr_float` and
`aclshmem_consume_token_float_ptr_1d` return. That is what orders the load behind the wait:

```mlir
{data_hivm}
```

In the last IR a load and a store are calls that copy between global memory (`gm`) and UB (`ub`). `pointer_cast` has a
buffer's place in UB, in bytes; these are what `compile` counts. `set_flag` and `wait_flag` have the store wait for the
load, and the barrier has the signal wait for the store:

```mlir
{data_final}
```
"""
