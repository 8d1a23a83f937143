"""What one variable holds in this process, and where that comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from triton_dist import env

# What the pytest plugin gives to the ranks of a test along with the NPUs that it has leased for them.
_OF_A_LEASE = (
    env.TRITON_DIST_SESSION,
    env.TRITON_DIST_MASTER_PORT,
    env.TRITON_DIST_SHMEM_PORT,
    env.TRITON_DIST_SIM_NPUS,
)

DEFAULT = "default"
PROCESS = "process environment"
LEASE = "lease"


@dataclass(frozen=True)
class State:
    """A variable as it is now.

    Attributes:
        variable: which one.
        value: the text in the environment, or None where it is not set. That of a secret is not shown.
        source: `PROCESS`, `LEASE` (the pytest plugin set it for the rank of a test) or `DEFAULT`.
        error: why the value is refused, or None.
    """

    variable: env.Variable[object]
    value: str | None
    source: str
    error: str | None

    def as_json(self) -> dict[str, Any]:
        """The variable and its state, as JSON's types."""
        return {**described(self.variable), "value": self.value, "source": self.source, "error": self.error}


def of(variable: env.Variable[object]) -> State:
    """The state of a variable in this process."""
    if not variable.is_set():
        return State(variable, None, DEFAULT, None)
    text = variable.text()
    error = None
    try:
        variable.parse(text)
    except env.EnvironmentVariableError as refusal:
        error = str(refusal)
    return State(variable, "(not shown)" if variable.kind == "secret" else text, _source(variable), error)


def described(variable: env.Variable[object]) -> dict[str, Any]:
    """What is known of a variable wherever it is used, as JSON's types."""
    return {
        "name": variable.name,
        "owner": variable.owner,
        "category": variable.category,
        "type": variable.kind,
        "default": variable.default,
        "allowed": variable.allowed,
        "meaning": variable.meaning,
        "since": variable.since,
        "acts_on": variable.acts_on,
        "note": variable.note,
        "initialisation": variable.initialisation,
    }


def _source(variable: env.Variable[object]) -> str:
    if not env.TRITON_DIST_SESSION.is_set():
        return PROCESS
    if variable in _OF_A_LEASE:
        return LEASE
    # The rank's own rendezvous is the lease's, unless its test has set another one.
    if variable is env.MASTER_PORT and variable.text() == env.TRITON_DIST_MASTER_PORT.text():
        return LEASE
    return PROCESS
