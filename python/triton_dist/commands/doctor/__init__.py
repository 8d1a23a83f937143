"""`python -m triton_dist doctor`: whether this host and this environment can build and run, and what mends them."""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

from triton_dist.commands import terminal
from triton_dist.commands.doctor.finding import Finding, fail
from triton_dist.commands.doctor.situation import Situation

_EXAMPLES = """\
examples:
  {program}                         everything that is looked at, and what was found
  {program} --fix                   mends what can be mended without harm, then looks again
  {program} --quick                 only what is wrong; what nox sessions begin with
  {program} --only triton           one check; may be given several times
  {program} --ranks 16              for jobs of 16 ranks
  {program} --json                  for programs

checks:
{checks}

exit codes:
  0  nothing must be mended; there may be warnings
  1  something must be mended
  2  wrong usage
"""


@dataclass(frozen=True)
class _Check:
    """A module of checks/ that has `look(situation)`, a generator of findings.

    Attributes:
        summary: what it looks at, in a few words.
        before_build: it makes sense before anything is installed.
        quick: it is part of the quick form.
    """

    summary: str
    before_build: bool = False
    quick: bool = True


_CHECKS = {
    "interpreter": _Check("this Python is supported, and `pip` installs into it", before_build=True),
    "triton": _Check("the triton that is imported is triton-ascend's"),
    "packages": _Check("the packages that this one needs are there, in versions that fit"),
    "toolchain": _Check("LLVM and what csrc is built with", before_build=True),
    "build": _Check("what earlier builds left in build/", before_build=True),
    "cann": _Check("CANN is found, sourced, and goes with torch_npu and triton-ascend"),
    "torch_npu": _Check("torch_npu can be loaded"),
    "compiler": _Check("the NPU's compiler is complete"),
    "npus": _Check("NPUs are visible, healthy, free, and of the image's family"),
    "memory": _Check("memory and /dev/shm for the ranks of a job", before_build=True),
    "disk": _Check("room where kernels and builds are kept", before_build=True),
    "leases": _Check("the lease directory can be used, and is the host's"),
    "ports": _Check("the ports that variables name are free"),
    "variables": _Check("environment variables have values that are allowed"),
    "docker": _Check("docker can be used", quick=False),
}


def main(arguments: list[str], program: str) -> int:
    """Runs the command; see _EXAMPLES for its exit codes."""
    checks = "\n".join(f"  {name:12}{check.summary}" for name, check in _CHECKS.items())
    parser = argparse.ArgumentParser(
        prog=program,
        description="Whether this host and this environment can build and run, and what mends them.",
        epilog=_EXAMPLES.format(program=program, checks=checks),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--fix", action="store_true", help="mend what can be mended without harm")
    parser.add_argument("--quick", action="store_true", help="print only what is wrong")
    parser.add_argument("--only", action="append", choices=_CHECKS, metavar="CHECK", help="one of the checks below")
    parser.add_argument("--ranks", type=_positive, metavar="N", help="how many ranks a job has at most")
    parser.add_argument("--before-build", action="store_true", help="do not miss what the build installs")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parsed = parser.parse_args(arguments)

    start = time.monotonic()
    situation = Situation.here(parsed.ranks, before_build=parsed.before_build)
    names = parsed.only or [
        name
        for name, check in _CHECKS.items()
        if (check.before_build or not parsed.before_build) and (check.quick or not parsed.quick)
    ]
    found = _look(names, situation)
    if parsed.fix and any(finding.fix for _, finding in found):
        _mend([finding for _, finding in found])
        found = _look(names, situation)
    seconds = time.monotonic() - start
    if parsed.json:
        print(json.dumps(_plain(found, situation, seconds), indent=2))
    else:
        paint = terminal.paint if sys.stdout.isatty() else terminal.plain
        for line in _lines([finding for _, finding in found], quick=parsed.quick):
            level = line.split(maxsplit=1)[0] if line[1:2].strip() else ""
            print(paint(_STYLES[level], line) if level in _STYLES else line)
        print(f"{_counted([finding for _, finding in found])} ({seconds:.1f} s)")
    return int(any(finding.level == "FAIL" for _, finding in found))


_STYLES = {"FAIL": "red", "warn": "yellow"}


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of ranks")
    return number


def _look(names: Sequence[str], situation: Situation) -> list[tuple[str, Finding]]:
    """What the checks find, in their order. They run at the same time: some wait for other programs."""

    def look(name: str) -> list[tuple[str, Finding]]:
        module = importlib.import_module(f"triton_dist.commands.doctor.checks.{name}")
        try:
            return [(name, finding) for finding in module.look(situation)]
        except Exception as error:  # whatever is wrong with the host: the other checks go on
            what = f"the check `{name}` could not be made: {type(error).__name__}: {error}"
            return [(name, fail(what, "what it looks at is not known to be right", "mend what the line above names"))]

    with ThreadPoolExecutor(len(names)) as executor:
        return [pair for pairs in executor.map(look, names) for pair in pairs]


def _mend(findings: Sequence[Finding]) -> None:
    for finding in findings:
        for command in finding.fix:
            print(f"fix: {' '.join(command)}", file=sys.stderr, flush=True)
            if subprocess.run(command, check=False, stdout=sys.stderr).returncode:
                break


def _lines(findings: Sequence[Finding], *, quick: bool) -> Iterator[str]:
    for finding in findings:
        if quick and finding.level == "ok":
            continue
        yield f" {finding.level:4}  {finding.what}"
        if finding.why:
            yield f"       {finding.why}"
        if finding.mend:
            yield f"       mend: {finding.mend}{'      (--fix does this)' if finding.fix else ''}"


def _counted(findings: Sequence[Finding]) -> str:
    wrong = sum(finding.level != "ok" for finding in findings)
    must = sum(finding.level == "FAIL" for finding in findings)
    if not wrong:
        return f"{len(findings)} looked at, nothing is wrong"
    return f"{wrong} {'finding' if wrong == 1 else 'findings'}, {must or 'none'} must be mended"


def _plain(found: Sequence[tuple[str, Finding]], situation: Situation, seconds: float) -> dict[str, object]:
    return {
        "backend": situation.backend,
        "ranks": situation.ranks,
        "seconds": round(seconds, 3),
        "findings": [{"check": name, **asdict(finding)} for name, finding in found],
    }
