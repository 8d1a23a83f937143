"""Tables of variables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triton_dist import env

ACTS_ON = {
    env.SIMULATED: "simulated NPUs",
    env.HARDWARE: "hardware",
    env.BOTH: "both",
    env.NOTHING: "nothing here",
}

INITIALISATION = {
    None: "",
    env.UNIQUE_ID: "For initialisation by unique id.",
    env.IP_PORT: "For initialisation by ip_port.",
}


def of_variables(variables: Iterable[env.Variable[object]]) -> str:
    """A table with a row for each variable."""
    return markdown(
        ("variable", "owner", "type", "default", "allowed", "meaning", "since", "acts on"),
        [
            (
                f"`{v.name}`",
                v.owner,
                v.kind,
                v.default,
                v.allowed,
                " ".join(filter(None, (v.meaning, v.note, INITIALISATION[v.initialisation]))),
                v.since,
                ACTS_ON[v.acts_on],
            )
            for v in variables
        ],
    )


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a text that Markdown would read as its end of a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
