"""Where the nodes of a test are, and how a command gets there: --dist-hosts and --dist-launch."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

DEFAULT_LAUNCH = "ssh -o BatchMode=yes {host} {command}"
_COMMAND = "{command}"
_HOST = "{host}"


@dataclass(frozen=True)
class Host:
    """One node's place.

    Attributes:
        name: what people, and the launch command, call it.
        address: where the ranks of other hosts reach it.
        launch: the words of the command that starts another there; see `launch_words`.
    """

    name: str
    address: str
    launch: tuple[str, ...]

    def command(self, words: Sequence[str]) -> list[str]:
        """The command that runs `words` on this host."""
        command: list[str] = []
        for word in self.launch:
            word = word.replace(_HOST, self.name)
            if word == _COMMAND:
                command += words
            else:
                # Part of a text that a shell is going to read there.
                command.append(word.replace(_COMMAND, shlex.join(words)))
        return command


def launch_words(template: str) -> tuple[str, ...]:
    """The words of --dist-launch, in which {host} and {command} stand for what they say.

    Raises:
        ValueError: {command} is not in it, or a quotation mark is alone.
    """
    try:
        words = tuple(shlex.split(template))
    except ValueError as error:
        raise ValueError(f"--dist-launch={template!r} is not allowed: {error}") from None
    if not any(_COMMAND in word for word in words):
        raise ValueError(
            f"--dist-launch={template!r} is not allowed: it takes a command with {{host}} and {{command}} in it, "
            f"such as {DEFAULT_LAUNCH!r}"
        )
    return words


def parse_hosts(text: str, template: str) -> list[Host]:
    """The hosts of --dist-hosts: NAME, or NAME=ADDRESS where others reach it by another name, with commas between.

    Raises:
        ValueError: there is a host without a name or an address, or twice the same; or `template` is not allowed.
    """
    launch = launch_words(template)
    hosts = []
    for entry in text.split(","):
        name, equals, address = (part.strip() for part in entry.partition("="))
        # A name that begins with a dash would be an option of the launch command.
        if not name or name.startswith("-") or (equals and not address):
            raise ValueError(f"--dist-hosts={text} is not allowed: it takes HOST or HOST=ADDRESS, with commas between")
        hosts.append(Host(name, address or name, launch))
    names = [host.name for host in hosts]
    if len(set(names)) < len(names):
        raise ValueError(f"--dist-hosts={text} is not allowed: it names a host twice")
    return hosts
