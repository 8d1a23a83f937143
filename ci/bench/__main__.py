"""Measures the rows that are named, or all: `python -m ci.bench --programs DIR [--json FILE] [ROW ...]`."""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import ci.bench
from ci.bench.row import Context, Row

Rows = Callable[[Context], list[Row]]


def benchmarks() -> Iterator[tuple[str, str, str]]:
    """Name of each benchmark, its group's, and its module."""
    for group in pkgutil.iter_modules(ci.bench.__path__):
        if not group.ispkg:
            continue
        package = importlib.import_module(f"ci.bench.{group.name}")
        for name in package.BENCHMARKS:
            yield name, group.name, f"{package.__name__}.{name}"


def main() -> int:
    """Gives 1 when a goal is not met, 2 when a name is unknown."""
    known = list(benchmarks())
    names = list(dict.fromkeys([name for name, _, _ in known] + [group for _, group, _ in known]))
    parser = argparse.ArgumentParser(prog="nox -s bench --", description="Measures rows against their peers.")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"what to measure: {', '.join(names)}; default: all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there, as a list of objects")
    parser.add_argument("--repetitions", type=int, default=7, help="how often each side is measured (default: 7)")
    parser.add_argument("--programs", type=Path, required=True, help=argparse.SUPPRESS)
    given = parser.parse_args()
    unknown = sorted({name for name in given.rows if name not in names})
    if unknown:
        parser.error(f"no row {', '.join(unknown)}: choose from {', '.join(names)}")
    context = Context(given.programs, given.repetitions)
    rows: list[Row] = []
    _print_line("row", "value", "unit", "peer", "peer", "ratio", "goal", "")
    for name, group, module in known:
        if given.rows and not {name, group} & set(given.rows):
            continue
        measure: Rows = importlib.import_module(module).rows
        for row in measure(context):
            rows.append(row)
            _print_row(row)
    if given.json is not None:
        given.json.write_text(json.dumps([row.as_json() for row in rows], indent=2) + "\n")
    return 0 if all(row.ok for row in rows) else 1


def _print_row(row: Row) -> None:
    end = "ok" if row.ok else "MISSED"
    _print_line(
        row.name, f"{row.value:.3g}", row.unit, f"{row.peer_value:.3g}", row.peer, f"{row.ratio:.2f}", row.goal, end
    )


def _print_line(name: str, value: str, unit: str, peer_value: str, peer: str, ratio: str, goal: str, end: str) -> None:
    print(f" {name:20} {value:>9} {unit:5} {peer_value:>9} {peer:34} {ratio:>7}  {goal:22} {end}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
