"""Who holds NPUs or waits for them, as written beside the locks for others to read.

The locks alone decide. What is written says nothing unless its lock is held, so it need not be taken away.
"""

from __future__ import annotations

import json
import os
import pwd
import socket
import time
from dataclasses import asdict, dataclass, fields
from typing import Any

_TYPES: dict[str, type | tuple[type, ...]] = {
    "pid": int,
    "host": str,
    "user": str,
    "worker": str,
    "test": str,
    "since": (int, float),
}
# Characters of each text: a test's name, a host's, a user's.
_LONGEST_TEXTS = (200, 40, 10)


@dataclass(frozen=True)
class Party:
    """A test that holds NPUs, or waits for them.

    Attributes:
        pid: of its pytest process, in the numbers of its container.
        host: the name of its container or host.
        user: who runs it.
        worker: of pytest-xdist, such as gw1; empty without it.
        test: its name.
        since: when it got the NPUs or joined the line, on the host's monotonic clock, in seconds.
    """

    pid: int
    host: str
    user: str
    worker: str
    test: str
    since: float

    @classmethod
    def here(cls, worker: str, test: str) -> Party:
        """A test of this process, from now on."""
        return cls(os.getpid(), socket.gethostname(), _user(), worker, test, time.monotonic())

    def seconds(self) -> float:
        """For how long by now."""
        return max(0.0, time.monotonic() - self.since)


def to_bytes(party: Party, room: int, **more: Any) -> bytes:
    """`party` and `more` as they are written, filled up to `room` bytes; long texts are shortened to fit."""
    for longest in _LONGEST_TEXTS:
        plain = {k: _shortened(v, longest) if isinstance(v, str) else v for k, v in asdict(party).items()}
        raw = json.dumps({**plain, **more}).encode()
        if len(raw) <= room:
            return raw.ljust(room, b"\0")
    raise ValueError(f"{len(raw)} bytes do not fit into {room}")


def from_bytes(raw: bytes) -> tuple[Party, dict[str, Any]] | None:
    """What `to_bytes` wrote; None if it did not, or was killed while it did."""
    try:
        plain = json.loads(raw.rstrip(b"\0"))
        party = Party(**{field.name: plain.pop(field.name) for field in fields(Party)})
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    if not all(isinstance(getattr(party, name), kind) for name, kind in _TYPES.items()):
        return None
    return party, plain


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        # A container's user need not have a name.
        return str(os.getuid())


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
