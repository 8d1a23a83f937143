"""The report of a self-test: one text with all that is known, to be sent to somebody who cannot see the host."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from triton_dist import env
from triton_dist.commands.selftest.step import FAILED, OK, SKIPPED, Outcome

_WIDTH = 100
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD", re.IGNORECASE)
_NOT_SHOWN = "(not shown)"
# A shorter value may stand anywhere by chance.
_SHORTEST_SECRET = 4
_LOGIN = re.compile(r"(\w+://)[^/\s@]+@")


def as_text(command: str, facts: Mapping[str, Any], outcomes: Sequence[Outcome], *, complete: bool) -> str:
    """The report; what is no text is written as JSON. Without what is secret in this process's environment.

    Args:
        command: how the self-test was started.
        complete: whether all steps have ended.
    """
    lines = [f"$ {command}", *(line for each in outcomes for line in summary(each)), ""]
    lines.append(counted(outcomes) if complete else "the self-test had not ended when this was written")
    for title, fact in facts.items():
        lines += [_rule(title), fact if isinstance(fact, str) else _plain(fact)]
    for outcome in outcomes:
        for title, text in outcome.details.items():
            lines += [_rule(f"{outcome.name}: {title}"), text.rstrip()]
    return without_secrets("\n".join(lines) + "\n")


def as_json(command: str, facts: Mapping[str, Any], outcomes: Sequence[Outcome]) -> str:
    """The same, for programs."""
    steps = [asdict(outcome) | {"seconds": round(outcome.seconds, 3)} for outcome in outcomes]
    return without_secrets(json.dumps({"command": command, "steps": steps, **facts}, indent=2))


def summary(outcome: Outcome) -> list[str]:
    """An outcome in a line, and in another what to do next."""
    seconds = f" ({outcome.seconds:.1f} s)" if outcome.state != SKIPPED else ""
    lines = [f" {outcome.state:7}  {outcome.name:11}  {outcome.what}{seconds}"]
    if outcome.mend:
        lines.append(f"{'':23}next: {outcome.mend}")
    return lines


def counted(outcomes: Sequence[Outcome]) -> str:
    """How many steps there are of each state."""
    words = {OK: "ok", FAILED: "failed", SKIPPED: "skipped"}
    counts = {state: sum(outcome.state == state for outcome in outcomes) for state in words}
    return ", ".join(f"{count} {words[state]}" for state, count in counts.items() if count or state == OK)


def without_secrets(text: str) -> str:
    """`text` without the values of variables whose names say that they are secret, and without logins in addresses."""
    values = [
        value
        for name, value in env.child_environ().items()
        if (_SECRET.search(name) or (name in env.REGISTRY and env.REGISTRY[name].kind == "secret"))
        and len(value) >= _SHORTEST_SECRET
    ]
    # A longer one first: another may be a part of it.
    for value in sorted(values, key=len, reverse=True):
        for form in {value, json.dumps(value)[1:-1]}:
            text = text.replace(form, _NOT_SHOWN)
    return _LOGIN.sub(rf"\1{_NOT_SHOWN}@", text)


def _plain(fact: Any) -> str:
    if not fact:
        return "none"
    if isinstance(fact, dict) and all(isinstance(value, str) for value in fact.values()):
        return "\n".join(
            f"{name}:\n{value.rstrip()}" if "\n" in value else f"{name}: {value}" for name, value in fact.items()
        )
    return json.dumps(fact, indent=1)


def _rule(title: str) -> str:
    return f"\n {title} ".ljust(_WIDTH, "-")
