"""Stands for a function or enumeration that triton-ascend has and this shim lacks."""

from __future__ import annotations

from typing import Any, NoReturn


class NotGiven:
    """Says by name, where it is called, that it cannot be given.

    Members of it (`PIPE.PIPE_S`) are such objects too, so that reading them in a kernel is harmless and using them
    fails at the line of the call.
    """

    # In a kernel, Triton shows the line of a call that fails if what was called is a builtin.
    __triton_builtin__ = True

    def __init__(self, name: str, reason: str) -> None:
        self._name = name
        self._reason = reason

    def __getattr__(self, member: str) -> NotGiven:
        if member.startswith("__"):
            raise AttributeError(member)
        return NotGiven(f"{self._name}.{member}", self._reason)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self.refuse()

    def __repr__(self) -> str:
        return f"<{self._name}: {self._reason}>"

    def refuse(self) -> NoReturn:
        """Raise NotImplementedError that names this object."""
        raise NotImplementedError(f"{self._name} is not available: {self._reason}")
