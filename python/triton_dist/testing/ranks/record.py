"""What is known of a job and its ranks."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from typing import Any

from triton_dist.testing.ranks.wire import Message


@dataclass
class RankRecord:
    """What is known of one rank.

    Attributes:
        rank: its number.
        pid: its process; None if it was never started.
        reused: whether that process had run another test before.
        kind: "returned", "skipped", "xfailed" or "failed" once its worker function has ended, else None.
        at: when that was, on the monotonic clock, in seconds.
        stopped: why it is in a debugger; None if it is in none.
        debugged: whether it has been in one.
        summary: the reason of a skip or xfail, the error of a failure in a line.
        text: the traceback of a failure.
        status: the wait status of its process; None as long as it runs.
        ended_by_us: whether it was running when the job was ended.
        stacks: Python stacks at the time-out; None if it did not answer.
        waits: what its programs waited for at the time-out.
        native: native stacks at the time-out; "" where nothing could tell them.
        stdout, stderr: captured output.
        crash: what faulthandler wrote.
    """

    rank: int
    pid: int | None = None
    reused: bool = False
    kind: str | None = None
    at: float = 0.0
    stopped: str | None = None
    debugged: bool = False
    summary: str = ""
    text: str = ""
    status: int | None = None
    ended_by_us: bool = False
    stacks: str | None = None
    waits: list[dict[str, Any]] = field(default_factory=list)
    native: str = ""
    stdout: str = ""
    stderr: str = ""
    crash: str = ""

    def take(self, message: Message) -> None:
        """Notes what the rank says of itself."""
        if message["is"] == "outcome":
            self.stopped = None
            self.kind, self.at = message["kind"], message["at"]
            self.summary, self.text = message.get("summary", ""), message.get("text", "")
        elif message["is"] == "stopped":
            self.stopped = message["what"]
            self.debugged = True
        else:
            self.stacks, self.waits = message["stacks"], message["waits"]

    @property
    def signal(self) -> signal.Signals | None:
        """The signal that ended the process, if one of the rank's own did."""
        if self.status is None or self.ended_by_us or not os.WIFSIGNALED(self.status):
            return None
        return signal.Signals(os.WTERMSIG(self.status))

    @property
    def failed(self) -> bool:
        if self.kind in ("failed", "xfailed"):
            return True
        return self.status is not None and not self.ended_by_us and self.status != 0

    @property
    def done(self) -> bool:
        """Whether nothing more is expected of its worker function."""
        return self.kind in ("returned", "skipped") or self.status is not None


@dataclass
class JobRecord:
    """What became of a job.

    Attributes:
        ranks: one record a rank.
        timeout: the time-out that it ran into, in seconds; None if it did not.
        broken: why the job could not be carried on, apart from its ranks; None if it could.
        hardware: what hosts with real NPUs could tell at the time-out, by file name.
    """

    ranks: list[RankRecord]
    timeout: float | None = None
    broken: str | None = None
    hardware: dict[str, str] = field(default_factory=dict)

    def why_npus_are_suspect(self) -> str | None:
        """Why the NPUs of the job may not be fit for another, in a few words; None if its ranks left them in order."""
        if self.timeout is not None:
            return f"ranks of its last test had not ended after {self.timeout:g} s"
        killed = [record.rank for record in self.ranks if record.ended_by_us or record.signal is not None]
        return f"rank {killed[0]} of its last test was killed" if killed else None
