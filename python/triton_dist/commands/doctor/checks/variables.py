"""Environment variables whose values are refused where they are read; `env --check` has the hints too."""

from __future__ import annotations

from collections.abc import Iterator

from triton_dist.commands.doctor.finding import Finding, fail, ok
from triton_dist.commands.doctor.situation import Situation
from triton_dist.commands.env import check


def look(situation: Situation) -> Iterator[Finding]:
    """The errors that `env --check` finds."""
    found = check.find(check.Situation.of_this_process(situation.backend, None, None))
    errors = [each for each in found if each.is_error]
    for each in errors:
        mend = f"unset {' '.join(each.names)}, or mend the value"
        yield fail(each.message, "programs end when they come to it", mend)
    if not errors:
        hints = len(found)
        more = f"; {hints} {'hint' if hints == 1 else 'hints'}: python -m triton_dist env --check" if hints else ""
        yield ok(f"environment variables{more}")
