"""What is known of one environment variable: its descriptor."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Generic as Generic
    from typing import TypeVar, overload

    from .kinds import Kind

    T = TypeVar("T", covariant=True)
    K = TypeVar("K")
else:
    T = K = None

    class Generic:
        """Stands in for `typing.Generic`: importing `typing` would take longer than this package."""

        def __class_getitem__(cls, parameter: object) -> type:
            return cls


# Category: read while a program runs, or by build and installation.
RUN = "run"
BUILD = "build"

# What a variable acts on.
SIMULATED = "simulated"
HARDWARE = "hardware"
BOTH = "both"
NOTHING = "nothing"

# The kinds of initialisation of aclshmem: attributes that name an ip_port, or a unique id that one rank hands round.
IP_PORT = "ip-port"
UNIQUE_ID = "uid"


class EnvironmentVariableError(ValueError):
    """A variable holds what it may not; the message names it, its value and what is allowed."""


class Variable(Generic[T]):
    """One environment variable.

    Attributes:
        name: as it stands in the environment.
        owner: the project that defined it: ours, or the one it is inherited from.
        category: `RUN` (read while a program runs) or `BUILD` (read by build and installation).
        kind: the type in a word, for tables: flag, integer, seconds, text, choice, directory, file, …
        allowed: the values allowed, in words.
        default: the default, in words.
        meaning: what it does, in one sentence.
        since: the release that it exists since.
        acts_on: `SIMULATED` NPUs, `HARDWARE`, `BOTH`, or `NOTHING` here.
        note: why it does not act where it does not, or what differs there; may be empty.
        initialisation: `IP_PORT` or `UNIQUE_ID` where it matters in that kind of initialisation alone, else None.
    """

    __slots__ = (
        "name",
        "owner",
        "category",
        "kind",
        "allowed",
        "default",
        "meaning",
        "since",
        "acts_on",
        "note",
        "initialisation",
        "_kind",
        "_default_text",
        "_below",
    )

    def __init__(
        self,
        name: str,
        kind: Kind[T],
        *,
        owner: str,
        category: str,
        default: str | None,
        unset: str,
        below: Variable[object] | None,
        meaning: str,
        since: str,
        acts_on: str,
        note: str,
        initialisation: str | None,
    ) -> None:
        self.name = name
        self.owner = owner
        self.category = category
        self.kind = kind.word
        self.allowed = kind.allowed
        self.default = unset if default is None else f"${{{below.name}}}/{default}" if below else default
        self.meaning = meaning
        self.since = since
        self.acts_on = acts_on
        self.note = note
        self.initialisation = initialisation
        self._kind = kind
        self._default_text = default
        self._below = below

    def __repr__(self) -> str:
        return f"<environment variable {self.name}: {self.kind}>"

    def text(self) -> str:
        """What the environment holds, stripped; empty where it is not set, or set to nothing."""
        return os.environ.get(self.name, "").strip()

    def is_set(self) -> bool:
        """Whether the environment holds a value that is not blank."""
        return bool(self.text())

    def get(self) -> T:
        """The value in the environment, or the default.

        Raises:
            EnvironmentVariableError: the value is not one of those allowed.
        """
        return self.parse(self.text())

    def parse(self, text: str) -> T:
        """The value that `text` stands for; blank text stands for the default.

        Raises:
            EnvironmentVariableError: the value is not one of those allowed.
        """
        text = text.strip()
        if not text:
            return self._make_default()
        try:
            return self._kind.parse(text)
        except ValueError as error:
            reason = f" ({error})" if self._kind.explains else ""
            raise EnvironmentVariableError(
                f"{self.name}={text!r} is not allowed: it takes {self.allowed}{reason}"
            ) from None

    def _make_default(self) -> T:
        if self._default_text is None:
            return None  # type: ignore[return-value]  # T has None in it then, see Declare
        if self._below is not None:
            return self._kind.parse(f"{self._below.get()}/{self._default_text}")
        return self._kind.parse(self._default_text)


class Declare:
    """Makes the variables of one owner and category."""

    __slots__ = ("_owner", "_category", "_acts_on")

    def __init__(self, owner: str, category: str, *, acts_on: str) -> None:
        self._owner = owner
        self._category = category
        self._acts_on = acts_on

    if TYPE_CHECKING:

        @overload
        def __call__(
            self,
            name: str,
            kind: Kind[K],
            *,
            default: str,
            below: Variable[object] | None = None,
            meaning: str,
            since: str,
            owner: str | None = None,
            acts_on: str | None = None,
            note: str = "",
            initialisation: str | None = None,
        ) -> Variable[K]: ...

        @overload
        def __call__(
            self,
            name: str,
            kind: Kind[K],
            *,
            unset: str = "none",
            meaning: str,
            since: str,
            owner: str | None = None,
            acts_on: str | None = None,
            note: str = "",
            initialisation: str | None = None,
        ) -> Variable[K | None]: ...

    def __call__(
        self,
        name: str,
        kind: Kind[K],
        *,
        default: str | None = None,
        unset: str = "none",
        below: Variable[object] | None = None,
        meaning: str,
        since: str,
        owner: str | None = None,
        acts_on: str | None = None,
        note: str = "",
        initialisation: str | None = None,
    ) -> Variable[K] | Variable[K | None]:
        """A variable whose default is the value of the text `default`, or None, which `unset` puts into words.

        A `default` that is `below` another variable is a path that starts with that one's value.
        """
        return Variable(
            name,
            kind,
            owner=owner or self._owner,
            category=self._category,
            default=default,
            unset=unset,
            below=below,
            meaning=meaning,
            since=since,
            acts_on=acts_on or self._acts_on,
            note=note,
            initialisation=initialisation,
        )
