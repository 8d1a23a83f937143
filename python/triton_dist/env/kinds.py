"""The types that variables have: what each takes, in words and as a parser."""

from __future__ import annotations

import os

from .variable import Generic, T

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FALSE_WORDS = ("OFF", "0", "NO", "FALSE", "N")


class Kind(Generic[T]):
    """One type.

    Attributes:
        word: its name in tables.
        allowed: the values allowed, in words.
        parse: gives the value of a text that is not blank; raises ValueError for a text that is not allowed.
        explains: the parser's ValueError says more than `allowed` does.
    """

    __slots__ = ("word", "allowed", "parse", "explains")

    def __init__(self, word: str, allowed: str, parse: Callable[[str], T], *, explains: bool = False) -> None:
        self.word = word
        self.allowed = allowed
        self.parse = parse
        self.explains = explains


def _flag(*true_words: str) -> Kind[bool]:
    def parse(text: str) -> bool:
        if text.upper() in true_words:
            return True
        if text.upper() in FALSE_WORDS:
            return False
        raise ValueError(text)

    return Kind("flag", f"{' '.join(true_words)} or {' '.join(FALSE_WORDS)}, in any case", parse)


# Upstream's programs do not agree on the words that switch a flag on, and take any other word for off. Here each flag
# has the words of the program that reads it, and any other word than these and the usual ones for off is refused.
FLAG = _flag("ON", "1", "YES", "TRUE", "Y")
FLAG_ONE = _flag("1")
FLAG_ONE_TRUE = _flag("1", "TRUE")
FLAG_ONE_TRUE_ON = _flag("1", "TRUE", "ON")


def _whole(text: str) -> int:
    """An integer as every program reads it: `int` would also take 1_000, blanks around it, and digits of any script."""
    if not (text.isascii() and text.removeprefix("-").isdigit()):
        raise ValueError(text)
    return int(text)


def integer(least: int, most: int | None = None, *, step: int = 1) -> Kind[int]:
    """Integers from `least` to `most`, both included, in steps of `step` from 0."""

    def parse(text: str) -> int:
        value = _whole(text)
        if value < least or (most is not None and value > most) or value % step:
            raise ValueError(text)
        return value

    span = f"from {least} to {most}" if most is not None else f"of {least} or more"
    steps = f" that is a multiple of {step}" if step > 1 else ""
    return Kind("integer", f"an integer {span}{steps}", parse)


PORT = integer(1, 65535)


def _parse_seconds(text: str) -> float:
    if "_" in text:
        raise ValueError(text)
    value = float(text)
    # NaN and infinity fail one of the two comparisons.
    if not 0 < value < float("inf"):
        raise ValueError(text)
    return value


SECONDS = Kind("seconds", "a number of seconds greater than 0", _parse_seconds)


def text(allowed: str = "any text") -> Kind[str]:
    """Any text; `allowed` says what it should be."""
    return Kind("text", allowed, str)


# A text that is shown nowhere.
SECRET = Kind("secret", "any text", str)


def choice(*choices: str) -> Kind[str]:
    """One of a few words, in any case; the value is the word as it is spelled here."""
    spelled = {word.upper(): word for word in choices}

    def parse(text: str) -> str:
        try:
            return spelled[text.upper()]
        except KeyError:
            raise ValueError(text) from None

    return Kind("choice", f"one of {', '.join(choices)}", parse)


def _parse_path(text: str) -> Path:
    from pathlib import Path

    return Path(os.path.expanduser(text))


DIRECTORY = Kind("directory", "the path of a directory", _parse_path)
FILE = Kind("file", "the path of a file", _parse_path)


def _parse_integers(text: str) -> tuple[int, ...]:
    values = tuple(_whole(part) for part in text.split(","))
    if min(values) < 0 or len(set(values)) != len(values):
        raise ValueError(text)
    return values


INTEGERS = Kind("integers", "different integers of 0 or more, separated by commas", _parse_integers)


def _parse_devices(text: str) -> tuple[int, ...]:
    values: list[int] = []
    for part in text.split(","):
        number = part.partition("-")[2] if part.startswith("Ascend") else part
        first, _, last = number.partition("-")
        values += range(_whole(first), _whole(last or first) + 1)
    if not values or len(set(values)) != len(values):
        raise ValueError(text)
    return tuple(values)


DEVICES = Kind(
    "devices",
    "different NPU ids and ranges of them, separated by commas, such as 0-2,5 or Ascend910-0",
    _parse_devices,
)


def _parse_ports(text: str) -> str:
    if text == "auto":
        return text
    seen: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        ports = range(_whole(first), _whole(last or first) + 1)
        if not ports or ports[0] < 1 or ports[-1] > 65535 or seen.intersection(ports):
            raise ValueError(text)
        seen.update(ports)
    return text


PORTS = Kind("ports", "auto, or ports and ranges of them that do not overlap, such as 60000,60050-60100", _parse_ports)


def _checked_by(parser: str) -> Callable[[str], str]:
    """A parser that gives the text back as it is, after that function of addresses.py has accepted it."""

    def parse(text: str) -> str:
        # Few programs need it, and it needs modules that an interpreter does not load at its start.
        from . import addresses

        getattr(addresses, parser)(text)
        return text

    return parse


ADDRESS = Kind(
    "address", "ip:port, [ipv6]:port, [ipv6%scope]:port or hostname:port", _checked_by("parse_address"), explains=True
)
INTERFACE = Kind(
    "interface", "name, name:inet4 or name:inet6, such as eth0:inet4", _checked_by("parse_interface"), explains=True
)
PORT_RANGE = Kind(
    "port range", "start:end, both from 1 to 65535, such as 1024:2047", _checked_by("parse_port_range"), explains=True
)
