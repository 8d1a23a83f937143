"""`python -m triton_dist compile`: compiles kernels for real SoCs, on any machine."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from triton_dist import env
from triton_dist.commands import terminal

_EXAMPLES = """\
examples:
  {program} add.py                                    all kernels of a file, typed by their annotations
  {program} add.py::add_kernel --target Ascend910B3 --target Ascend910_9392
  {program} add.py::add_kernel --signature 'x=*fp16, y=*fp16, n=i32, BLOCK=1024'
  {program} add.py --call 'add_kernel[(8,)](torch.empty(8192), torch.empty(8192), 8192, BLOCK=1024)'
  {program} gemm.py --call 'main()' --option multibuffer=False --json report.json
  {program} add.py::add_kernel --emit linalg --output add.mlir

what is compiled:
  The kernel goes through triton-ascend and bishengir-compile with the flags of a launch, up to hivmc, the last step,
  which only CANN has; where it is on PATH, through that too. No NPU is needed. --call runs the expression in the file's
  namespace, with the launches left out: the types and constants of their arguments are taken.

states:
  ok        it compiles, and fits into the SoC's memories
  failed    it does not; the message begins with the kernel's line
  blocked   the NPU's compiler gives up on something that the kernel cannot help

exit codes:
  0  all kernels are ok
  1  a kernel is not
  2  wrong usage: no such file, kernel, SoC or type
"""
_TARGET_HELP = "SoC to compile for; may be given again (default: that of TRITON_ASCEND_ARCH, else Ascend910B3)"
_STAGING_HELP = """aclshmem's staging buffer in UB, in bytes, as aclshmemx_set_mte_config sets it; end: the last 16 KiB
(default: %(default)s, as aclshmem has it)"""
_STAGES = ("ttir", "linalg", "hivm", "llvm")


class _UsageError(Exception):
    """What was asked for cannot be done; the text says why."""


def main(arguments: list[str], program: str) -> int:
    """Runs the command; see _EXAMPLES for its exit codes."""
    parsed = _parser(program).parse_args(arguments)
    if env.TRITON_INTERPRET.get():
        # Triton decides at its import whether kernels are compiled.
        env.apply({env.TRITON_INTERPRET.name: None})
    try:
        return _compile(parsed)
    except _UsageError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 2


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        description="Compiles kernels for one or more SoCs, without an NPU, and says what they take of its memories.",
        epilog=_EXAMPLES.format(program=program),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("kernels", nargs="+", metavar="FILE[::KERNEL]", help="a file, or one of its kernels")
    add("--target", action="append", metavar="SOC", help=_TARGET_HELP)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--signature", metavar="TEXT", help="types and constants, by name or by position")
    how.add_argument("--call", metavar="EXPRESSION", help="a call that launches the kernels")
    add("--option", action="append", default=[], metavar="NAME=VALUE", help="a compiler option; may be given again")
    add("--staging", default="0:16384", metavar="OFFSET:SIZE", help=_STAGING_HELP)
    add("--emit", choices=_STAGES, help="print the IR of a stage instead of the table")
    add("--output", type=Path, metavar="FILE", help="where --emit writes (default: standard output)")
    add("--json", type=Path, metavar="FILE", help="write the results as JSON too; - is standard output")
    add("--jobs", type=int, metavar="N", help="how many kernels are compiled at once (default: one for each core)")
    return parser


def _compile(parsed: argparse.Namespace) -> int:
    # Triton and torch take their time: nobody who asks for --help, or mistypes, waits for them.
    from triton_dist.compiler.npu import jobs, report

    requests = _requests(parsed)
    progress = terminal.Progress(len(requests), "compiled")
    results: list[Any] = [None] * len(requests)
    for position, result in jobs.run(requests, parsed.jobs or jobs.default_count()):
        results[position] = result
        progress.done()
    progress.end()
    if parsed.emit:
        _emit(results, parsed.emit, parsed.output)
    if parsed.json is not None:
        text = json.dumps([report.as_row(result) for result in results], indent=2)
        if str(parsed.json) == "-":
            print(text)
        else:
            parsed.json.write_text(text + "\n")
    if not parsed.emit and str(parsed.json) != "-":
        paint = terminal.paint if sys.stdout.isatty() else terminal.plain
        for line in report.lines(results, paint, _shown):
            print(line)
        print(report.summary(results))
    return 0 if all(result.state == "ok" for result in results) else 1


def _requests(parsed: argparse.Namespace) -> list[Any]:
    from triton_dist.compiler.errors import KernelCompileError
    from triton_dist.compiler.npu import choices, staging, tools
    from triton_dist.compiler.npu.signatures import SignatureError

    files: dict[Path, list[str]] = {}
    for asked in parsed.kernels:
        file, _, kernel = asked.partition("::")
        if not Path(file).is_file():
            raise _UsageError(f"there is no file {file}")
        files.setdefault(Path(file), []).extend([kernel] if kernel else [])
    try:
        tools.put_on_path()
        targets = choices.targets(parsed.target or [env.TRITON_ASCEND_ARCH.get() or "Ascend910B3"])
        buffer = staging.parse(parsed.staging)
        found = [
            choice
            for file, names in files.items()
            for choice in choices.of_file(file, names, parsed.signature, parsed.call, parsed.option, _note)
        ]
    except (KernelCompileError, SignatureError, ValueError) as error:
        raise _UsageError(str(error)) from error
    return [choices.request(choice, target, buffer) for choice in found for target in targets]


def _note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)


def _emit(results: Sequence[Any], stage: str, output: Path | None) -> None:
    parts: list[str] = []
    for result in results:
        if stage in result.stages:
            head = f"// {result.name} for {result.target}: {stage}\n" if len(results) > 1 else ""
            parts.append(head + result.stages[stage].rstrip() + "\n")
        if result.state != "ok":
            print(f"{result.name} for {result.target}: {result.state}: {_shown(result.message)}", file=sys.stderr)
    if output is not None:
        output.write_text("\n".join(parts))
    else:
        print("\n".join(parts), end="")


def _shown(text: str) -> str:
    """A text with the paths below the working directory as seen from there."""
    return text.replace(f"{os.getcwd()}{os.sep}", "")
