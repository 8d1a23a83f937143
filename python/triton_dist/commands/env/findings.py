"""What a check of the environment finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from triton_dist import env


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or looks so.

    Attributes:
        severity: `error`: the value is refused where it is read. `hint`: something is likely not meant.
        kind: `bad value`, `typo`, `contradiction` or `no effect`.
        names: the variables that it is about.
        message: one line: what is wrong, and what happens or what to do.
    """

    severity: Literal["error", "hint"]
    kind: Literal["bad value", "typo", "contradiction", "no effect"]
    names: tuple[str, ...]
    message: str

    @property
    def is_error(self) -> bool:
        """Whether a program that reads the variables would refuse them."""
        return self.severity == "error"


def contradiction(message: str, *variables: env.Variable[object], is_error: bool = False) -> Finding:
    """A contradiction between variables: `message` goes on after their names."""
    names = tuple(variable.name for variable in variables)
    return Finding("error" if is_error else "hint", "contradiction", names, f"{' and '.join(names)}: {message}")
