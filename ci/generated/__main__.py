"""Writes the generated pages; with `--check`, says which of them are stale, and how, instead."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

from ci.generated import bake_file, combinations_page, environment_page, pipeline_page
from triton_dist.compiler.errors import KernelCompileError

ROOT = Path(__file__).resolve().parents[2]
PAGES = {page.PATH: page for page in (bake_file, combinations_page, environment_page, pipeline_page)}


def main() -> int:
    """Gives 1 when a page is stale and was only to be checked, or cannot be made."""
    parser = argparse.ArgumentParser(prog="python -m ci.generated", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail with a diff when a page is stale")
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"only these: {', '.join(PAGES)}")
    parsed = parser.parse_args()
    if unknown := [page for page in parsed.pages if page not in PAGES]:
        parser.error(f"{unknown[0]} is not generated; those that are: {', '.join(PAGES)}")
    stale = failed = 0
    for page in [PAGES[path] for path in parsed.pages or PAGES]:
        path = ROOT / page.PATH
        old = path.read_text() if path.is_file() else ""
        try:
            new = page.render()
        except KernelCompileError as error:
            print(f"{page.PATH} cannot be made: {error}", file=sys.stderr)
            failed += 1
            continue
        if old == new:
            print(f"{page.PATH} is current")
        elif parsed.check:
            stale += 1
            lines = difflib.unified_diff(
                old.splitlines(), new.splitlines(), page.PATH, "what code says", lineterm="", n=1
            )
            print("\n".join(lines))
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(new)
            print(f"{page.PATH} is written")
    if stale:
        print("stale: run `nox -s generate` and commit what it writes", file=sys.stderr)
    return int(stale + failed > 0)


if __name__ == "__main__":
    sys.exit(main())
