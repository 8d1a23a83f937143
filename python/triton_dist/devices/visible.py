"""ASCEND_VISIBLE_DEVICES and ASCEND_RT_VISIBLE_DEVICES, one upon the other as CANN has them.

The first gives a container its NPUs, by physical numbers. CANN counts what the container has from 0, and the second
picks from these logical numbers: "only those before the first invalid one are read", says CANN's reference.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from triton_dist import env

_RANGE = re.compile(r"(?:Ascend[0-9A-Za-z]*-)?([0-9]{1,4})(?:-([0-9]{1,4}))?")
_LOGICAL = re.compile(r"[0-9]{1,4}")


class VisibleDevicesError(ValueError):
    """A variable holds what it may not; the message names it, its value and what is allowed."""


def in_container(physical_ids: Sequence[int]) -> tuple[int, ...]:
    """Those of `physical_ids` that ASCEND_VISIBLE_DEVICES leaves, in the same order.

    Raises:
        VisibleDevicesError: the variable is not a list of numbers.
    """
    # As it stands: the words for all and for none are not NPUs.
    text = env.ASCEND_VISIBLE_DEVICES.text()
    if not text or text.lower() == "all":
        return tuple(physical_ids)
    if text.lower() in ("void", "none"):
        return ()
    wanted = parse_numbers(text, env.ASCEND_VISIBLE_DEVICES.name)
    return tuple(number for number in physical_ids if number in wanted)


def in_process(count: int) -> tuple[tuple[int, ...], str | None]:
    """The logical numbers, of `count`, that ASCEND_RT_VISIBLE_DEVICES leaves, in its order; and what it ignores.

    The note is None where the whole value is read.
    """
    # As it stands: what is not allowed here is read in part.
    text = env.ASCEND_RT_VISIBLE_DEVICES.text()
    if not text or count == 0:
        return tuple(range(count)), None
    chosen: list[int] = []
    for word in text.split(","):
        if not _LOGICAL.fullmatch(word) or int(word) >= count or int(word) in chosen:
            note = (
                f"ASCEND_RT_VISIBLE_DEVICES={text!r} is read up to {word!r}: it takes different logical numbers "
                f"from 0 to {count - 1}, separated by commas alone"
            )
            return tuple(chosen), note
        chosen.append(int(word))
    return tuple(chosen), None


def parse_numbers(text: str, name: str) -> frozenset[int]:
    """The numbers in a list such as "0,2,5-7".

    Args:
        text: the list; a number may have the SoC's name before it, as in Ascend910-3.
        name: of what holds it, for the message.

    Raises:
        VisibleDevicesError: it is not such a list.
    """
    numbers: set[int] = set()
    for word in text.split(","):
        match = _RANGE.fullmatch(word.strip())
        if match is None or (match[2] is not None and int(match[2]) < int(match[1])):
            raise VisibleDevicesError(
                f"{name}={text} is not allowed: {word.strip()!r} is neither a number nor a range such as 5-7"
            )
        numbers.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return frozenset(numbers)


def as_text(numbers: Sequence[int]) -> str:
    """A short form of ascending `numbers`, such as "0,2,5-7"."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)
