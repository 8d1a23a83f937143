"""Setting variables: for this process, and for a child."""

from __future__ import annotations

import os

from .registry import REGISTRY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def apply(changes: Mapping[str, object | None]) -> None:
    """Sets variables of this process, or takes those out whose new value is None.

    Raises:
        EnvironmentVariableError: a value is not allowed; nothing has been changed then.
    """
    texts = _checked(changes)
    for name, text in texts.items():
        if text is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = text


def replace(environ: Mapping[str, str]) -> None:
    """Makes `environ` the whole environment of this process: what is not in it is taken out.

    Raises:
        EnvironmentVariableError: a value is not allowed; nothing has been changed then.
    """
    _checked(environ)
    os.environ.clear()
    os.environ.update(environ)


def child_environ(**changes: object | None) -> dict[str, str]:
    """A copy of this process's environment with `changes`; a value of None takes the variable out.

    Raises:
        EnvironmentVariableError: a value is not allowed.
    """
    environ = dict(os.environ)
    for name, text in _checked(changes).items():
        if text is None:
            environ.pop(name, None)
        else:
            environ[name] = text
    return environ


def _checked(changes: Mapping[str, object | None]) -> dict[str, str | None]:
    texts: dict[str, str | None] = {}
    for name, value in changes.items():
        texts[name] = None if value is None else str(value)
        variable = REGISTRY.get(name)
        if variable is not None and value is not None:
            variable.parse(str(value))
    return texts
