"""Everything about one variable."""

from __future__ import annotations

import json
import sys

from triton_dist import env
from triton_dist.commands.env import near, state, tables


def run(name: str, *, as_json: bool) -> int:
    """Prints what is known of a variable and what it holds. Gives 2, after one line, where there is no such name."""
    variable = env.REGISTRY.get(name)
    if variable is None:
        names = near.nearest(name, env.REGISTRY)
        meant = f": did you mean {' or '.join(names)}?" if names else ""
        print(f"{name} is not a variable that is known here{meant}", file=sys.stderr)
        return 2
    now = state.of(variable)
    if as_json:
        print(json.dumps(now.as_json(), indent=2))
        return 0
    print(f"{variable.name}: {variable.meaning}")
    rows = {
        "value": "not set" if now.value is None else f"{now.value}  ({now.source})",
        "refused": now.error,
        "default": variable.default,
        "type": variable.kind,
        "allowed": variable.allowed,
        "owner": variable.owner,
        "since": variable.since,
        "read": "while a program runs" if variable.category == env.RUN else "by build and installation",
        "acts on": tables.ACTS_ON[variable.acts_on],
        "matters": tables.INITIALISATION[variable.initialisation],
        "note": variable.note,
    }
    for title, text in rows.items():
        if text:
            print(f"  {title:15} {text}")
    return 0
