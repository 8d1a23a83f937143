"""All variables: as text, as JSON, as Markdown."""

from __future__ import annotations

import json

from triton_dist import env
from triton_dist.commands import terminal
from triton_dist.commands.env import state, tables

_TITLES = {env.RUN: "run time", env.BUILD: "build time"}


def print_text(*, only_set: bool, colours: bool) -> None:
    """Prints a line for each variable: what it holds or, in brackets, its default; where from; what it does."""
    paint = terminal.paint if colours else terminal.plain
    for category, title in _TITLES.items():
        states = _states(category, only_set=only_set)
        print(paint("bold", f"{title}: {sum(s.value is not None for s in states)} set"))
        for each in states:
            held = f"({each.variable.default})" if each.value is None else each.value
            row = f"{terminal.shortened(each.variable.name, 32)}  {terminal.shortened(held, 28)}  {each.source:19}  "
            style = "red" if each.error else "dim" if each.value is None else "green"
            print("  " + paint(style, row) + each.variable.meaning)
            if each.error:
                print("    " + paint("red", each.error))
        print()


def print_json(*, only_set: bool) -> None:
    """Prints an object with the list `variables`: for each what is known of it, `value`, `source` and `error`."""
    states = [each for category in _TITLES for each in _states(category, only_set=only_set)]
    print(json.dumps({"variables": [each.as_json() for each in states]}, indent=2))


def print_markdown(*, only_set: bool) -> None:
    """Prints the tables of docs/environment.md, a heading before each."""
    for category, title in _TITLES.items():
        chosen = [each.variable for each in _states(category, only_set=only_set)]
        print(f"## {title.capitalize()}\n\n{tables.of_variables(chosen)}\n")


def _states(category: str, *, only_set: bool) -> list[state.State]:
    states = map(state.of, env.variables(category))
    return [each for each in states if each.value is not None or not only_set]
