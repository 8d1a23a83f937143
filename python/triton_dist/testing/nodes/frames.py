"""Messages between pytest and a node: a line of JSON each, over the standard streams of the command that started it.

What else comes over these streams, such as the greeting of a login shell, is kept apart.
"""

from __future__ import annotations

import json
import os
import select
import time
from typing import Any

Message = dict[str, Any]

_MARK = b"triton-dist "
_PIECE = 65536
# Of what is not ours, in bytes.
_MOST_NOISE = 4096
# How long the other side may take to read a message, in seconds.
_TIME_TO_SEND = 10.0


class Frames:
    """One end of a connection.

    Attributes:
        source: descriptor to read from; readable when there may be a message.
        noise: the end of what came in and is no message.
        ended: whether the other side has closed its end.
    """

    def __init__(self, source: int, target: int) -> None:
        """`target`: descriptor to write to."""
        self.source = source
        self.noise = b""
        self.ended = False
        self._target = target
        self._unread = b""
        os.set_blocking(source, False)
        os.set_blocking(target, False)

    def send(self, message: Message) -> bool:
        """Sends `message`; False if nobody reads at the other end."""
        left = memoryview(_MARK + json.dumps(message).encode() + b"\n")
        deadline = time.monotonic() + _TIME_TO_SEND
        poll = select.poll()
        poll.register(self._target, select.POLLOUT)
        while left:
            try:
                left = left[os.write(self._target, left[:_PIECE]) :]
            except BlockingIOError:
                if time.monotonic() > deadline:
                    return False
                poll.poll(100)
            except OSError:
                return False
        return True

    def receive(self) -> list[Message]:
        """The messages that are there; does not wait."""
        while not self.ended:
            try:
                piece = os.read(self.source, _PIECE)
            except BlockingIOError:
                break
            except OSError:
                piece = b""
            self.ended = not piece
            self._unread += piece
        *lines, self._unread = self._unread.split(b"\n")
        messages = []
        for line in lines:
            # A shell's greeting may end without a line's end.
            noise, mark, content = line.partition(_MARK)
            try:
                messages.append(json.loads(content))
            except ValueError:
                noise += mark + content
            if noise.strip():
                self.noise = (self.noise + noise + b"\n")[-_MOST_NOISE:]
        return messages
