"""`python -m triton_dist npus`: which NPUs the host has, who holds them, and who waits for them."""

from __future__ import annotations

import argparse
import json
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Any

from triton_dist.commands import terminal
from triton_dist.devices.survey import Survey, survey
from triton_dist.runtime import backend
from triton_dist.testing.leases import status
from triton_dist.testing.leases.directory import LeaseDirectory
from triton_dist.testing.leases.errors import LeaseError
from triton_dist.testing.leases.line import Waiting
from triton_dist.testing.leases.parties import Party
from triton_dist.testing.leases.status import Row, Status

_EXAMPLES = """\
examples:
  {program}                 a line for each NPU, and one for each test that waits
  {program} --json          for programs
  watch -n 1 {program}      as it goes on

states:
  free          the next test may have it
  leased        a test has it
  busy          a program that is not a test is on it; --allow-busy-npus has tests use it all the same
  skipped       tests cannot use it
  quarantined   something hung or was killed on it; it is free again when npu-smi shows it in order

exit codes:
  0  the NPUs were shown
  1  they could not be looked for, or the lease directory cannot be read
  2  wrong usage
"""
_STYLES = {status.FREE: "green", status.LEASED: "bold", status.BUSY: "yellow", status.SKIPPED: "dim"}


def main(arguments: list[str], program: str) -> int:
    """Runs the command; see _EXAMPLES for its exit codes."""
    parser = argparse.ArgumentParser(
        prog=program,
        description="Which NPUs this host has, who holds them, and who waits for them.",
        epilog=_EXAMPLES.format(program=program),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parsed = parser.parse_args(arguments)
    directory = LeaseDirectory.of_this_host()
    try:
        found = survey() if backend.active() == "ascend" else Survey()
        seen = status.status(found, directory)
    except (LeaseError, ValueError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 1
    if parsed.json:
        print(json.dumps(_plain(seen, found.notes, directory), indent=2))
    else:
        paint = terminal.paint if sys.stdout.isatty() else terminal.plain
        for line in _lines(seen, found.notes, paint):
            print(line)
    return 0


def _lines(seen: Status, notes: Sequence[str], paint: Callable[[str, str], str]) -> list[str]:
    head = ("npu", "soc", "health", "state", "since")
    cells = [head, *((_number(row), row.soc, row.health, _state(row), _since(row)) for row in seen.rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    lines = [paint("bold", _joined(head, widths))]
    for row, line in zip(seen.rows, cells[1:], strict=True):
        lines.append(paint(_STYLES.get(row.state, "red"), _joined(line, widths)))
    kinds = {row.kind for row in seen.rows}
    for kind in sorted(kinds | {waiting.request.kind for waiting in seen.waiting}):
        in_line = [waiting for waiting in seen.waiting if waiting.request.kind == kind]
        lines += [_waiting_line(place, waiting) for place, waiting in enumerate(in_line, 1)]
    return [*lines, *(f" note: {note}" for note in notes)]


def _joined(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = cells
    aligned = [first.rjust(widths[0]), *(cell.ljust(width) for cell, width in zip(others, widths[1:], strict=True))]
    return f" {'  '.join(aligned)}".rstrip()


def _number(row: Row) -> str:
    return str(row.npu) if row.kind == "npu" else f"sim {row.npu}"


def _state(row: Row) -> str:
    who = [_who(row.holder)] if row.holder else []
    detail = row.detail
    if row.state == status.BUSY:
        detail = f"{detail} (not ours)"
    elif detail and who:
        detail = f"({detail})"
    widest = max(map(len, (status.FREE, status.LEASED, status.BUSY, status.SKIPPED)))
    return "  ".join([row.state.ljust(widest) if who or detail else row.state, *who, *([detail] if detail else [])])


def _who(party: Party) -> str:
    """The test and its process, with host and user where they are not those of who looks."""
    here = Party.here("", "")
    elsewhere = f"on {party.host}" if party.host != here.host else ""
    user = f"of {party.user}" if party.user != here.user else ""
    process = " ".join(filter(None, ("pytest", str(party.pid), party.worker, elsewhere, user)))
    return f"{process}  {party.test}".rstrip()


def _since(row: Row) -> str:
    return _duration(row.holder.seconds()) if row.holder else ""


def _waiting_line(place: int, waiting: Waiting) -> str:
    request = waiting.request
    kind = " simulated" if request.kind == "sim" else ""
    where = "first in line" if place == 1 else f"number {place} in line"
    passed = f", passed {request.passed} of at most {request.most_passes} times" if request.passed else ""
    absent = "; its process does not look after its place" if waiting.is_absent else ""
    who = _who(waiting.party).replace("  ", " ")
    return (
        f" waiting: {who} needs {request.count}{kind}, {where} for {_duration(waiting.party.seconds())}{passed}{absent}"
    )


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def _plain(seen: Status, notes: Sequence[str], directory: LeaseDirectory) -> dict[str, Any]:
    return {
        "host": socket.gethostname(),
        "lease_directory": str(directory.path),
        "npus": [
            {
                "kind": row.kind,
                "npu": row.npu,
                "logical": row.logical,
                "soc": row.soc,
                "health": row.health,
                "state": row.state,
                "detail": row.detail,
                "holder": _plain_party(row.holder) if row.holder else None,
            }
            for row in seen.rows
        ],
        "waiting": [
            {
                "kind": waiting.request.kind,
                "count": waiting.request.count,
                "npus": sorted(waiting.request.npus),
                "passed": waiting.request.passed,
                "most_passes": waiting.request.most_passes,
                **_plain_party(waiting.party),
            }
            for waiting in seen.waiting
        ],
        "notes": list(notes),
    }


def _plain_party(party: Party) -> dict[str, Any]:
    return {
        "pid": party.pid,
        "host": party.host,
        "user": party.user,
        "worker": party.worker,
        "test": party.test,
        "seconds": round(party.seconds(), 3),
    }
