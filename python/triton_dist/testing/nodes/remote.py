"""pytest's side of one node: the command that started it there, and what it says."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress

from triton_dist import env
from triton_dist.testing.nodes.frames import Frames, Message
from triton_dist.testing.nodes.hosts import Host
from triton_dist.testing.ranks.wire import memory_file, read_text

# What the launch command may take to leave when its node has been told to, in seconds; and after a SIGTERM.
_TIME_TO_LEAVE = 5.0
_TIME_AFTER_SIGTERM = 1.0
_MOST_WORDS = 500


class NodeError(RuntimeError):
    """A node cannot be had, or is lost; the message names its host and says what is known of it."""


class RemoteNode:
    """A node, from its start to `close`.

    Attributes:
        host: where it is.
        number: among the nodes of its test.
        identity: the same for nodes that share their NPUs, once it has said so.
    """

    def __init__(self, host: Host, number: int) -> None:
        """Starts it.

        Raises:
            NodeError: the launch command is not there.
        """
        self.host = host
        self.number = number
        self.identity = ""
        self._command = host.command([sys.executable, "-m", "triton_dist.testing.nodes.node"])
        self._errors = memory_file("triton-dist-launch")
        try:
            self._process = subprocess.Popen(
                self._command,
                env=env.child_environ(),
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                # Out of the terminal's reach: Ctrl-C is for pytest to handle.
                start_new_session=True,
            )
        except OSError as error:
            os.close(self._errors)
            raise NodeError(f"host {host.name}: {self._command[0]} cannot be started: {error.strerror}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._frames = Frames(self._process.stdout.fileno(), self._process.stdin.fileno())

    @property
    def source(self) -> int:
        """A descriptor that is readable when there may be a message, or the end."""
        return self._frames.source

    @property
    def is_lost(self) -> bool:
        return self._frames.ended

    def send(self, message: Message) -> bool:
        return self._frames.send(message)

    def receive(self) -> list[Message]:
        """The messages that are there; does not wait."""
        return self._frames.receive()

    def describe_end(self) -> str:
        """How it ended, in a line or a few; to be asked only when it is lost."""
        try:
            status = self._process.wait(_TIME_TO_LEAVE)
        except subprocess.TimeoutExpired:
            how = "closed its output"
        else:
            how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with exit status {status}"
            if status == 0:
                how += " (does it pass standard input on, as docker exec -i does?)"
        words = (self._frames.noise.decode(errors="replace") + read_text(self._errors)).strip()[-_MOST_WORDS:]
        command = " ".join(self._command[: len(self._command) - 2])
        return f"the node on host {self.host.name} is lost: `{command}` {how}" + (f": {words}" if words else "")

    def close(self) -> None:
        """Ends the launch command; the node ends when it hears nothing more."""
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            # What is left in its buffer has no reader.
            with suppress(OSError):
                stream.close()
        try:
            self._process.wait(_TIME_TO_LEAVE)
        except subprocess.TimeoutExpired:
            self._kill()
        os.close(self._errors)

    def _kill(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_TIME_AFTER_SIGTERM)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def with_news(nodes: Iterable[RemoteNode], seconds: float) -> list[RemoteNode]:
    """Those of `nodes` that have said something, or are lost; waits up to `seconds` for the first of them."""
    poll = select.poll()
    by_source = {node.source: node for node in nodes if not node.is_lost}
    for source in by_source:
        poll.register(source, select.POLLIN)
    if not by_source:
        time.sleep(max(0.0, seconds))
        return []
    return [by_source[source] for source, _ in poll.poll(max(0.0, seconds) * 1e3)]
