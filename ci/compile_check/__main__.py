"""Compiles the project's kernels for real SoCs: what `nox -s compile-check` runs."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from ci.compile_check import kernels
from ci.compile_check.kernels import ROOT
from triton_dist.commands import terminal
from triton_dist.compiler.npu import choices, jobs, outcomes, report, signatures, source_file, staging, tools
from triton_dist.compiler.npu.compilation import BLOCKED, OK, Request, Result


def main() -> int:
    """Runs the check; the exit code is 1 where a kernel does not compile."""
    parser = argparse.ArgumentParser(prog="nox -s compile-check --", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results as JSON too")
    parser.add_argument("--target", action="append", metavar="SOC", help="check for this SoC alone; may be given again")
    parser.add_argument("-k", dest="pattern", default="", metavar="TEXT", help="kernels with this text in file::name")
    parsed = parser.parse_args()
    listing = kernels.read()
    tools.put_on_path()
    begin = time.monotonic()
    requests = _requests(listing, choices.targets(parsed.target or listing.targets), parsed.pattern)
    outcomes.prepare()
    progress = terminal.Progress(len(requests), "compiled")
    results: list[Result] = [Result("", "")] * len(requests)
    for position, result in jobs.run(requests, jobs.default_count(), outcomes.compiled):
        results[position] = result
        progress.done()
    progress.end()
    for line in report.lines(results, lambda style, text: text, lambda text: text.replace(f"{ROOT}{os.sep}", "")):
        print(line)
    print(f"{report.summary(results)}, in {time.monotonic() - begin:.1f} s")
    if parsed.json is not None:
        parsed.json.write_text(json.dumps([report.as_row(result) for result in results], indent=2) + "\n")
    bad = [result for result in results if not _is_allowed(result, listing)]
    return 1 if bad or not results else 0


def _is_allowed(result: Result, listing: kernels.Listing) -> bool:
    if result.state == BLOCKED:
        return result.target.startswith(tuple(listing.may_be_blocked))
    return result.state == OK


def _requests(listing: kernels.Listing, targets: list[str], pattern: str) -> list[Request]:
    requests: list[Request] = []
    for row in listing.kernels:
        name = f"{row.file}::{row.name}"
        if pattern not in name:
            continue
        module = source_file.load(ROOT / row.file, lambda _: None)
        kernel = source_file.innermost(getattr(module, row.name))
        for target in targets:
            for label, text in row.signatures_for(target):
                given = signatures.of_text(kernel, text, vars(module))
                signature = signatures.complete(kernel, signatures.of_annotations(kernel), given)
                choice = choices.Choice(kernel, label, signature, dict(row.options))
                requests.append(choices.request(choice, target, staging.parse(row.staging)))
    return requests


if __name__ == "__main__":
    sys.exit(main())
