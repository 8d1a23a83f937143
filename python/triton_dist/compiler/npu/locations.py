"""Where operations of an IR with locations come from: file, line and column of the kernel's source."""

from __future__ import annotations

import re

_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)
_FILE_LINE = re.compile(r'"([^"]+)":(\d+):(\d+)')
_REFERENCE = re.compile(r"#loc\d*")


class Locations:
    """The locations of one module, as MLIR prints them: in place or by alias."""

    def __init__(self, text: str) -> None:
        self._aliases = dict(_ALIAS.findall(text))

    def place(self, line: str) -> str:
        """`file:line:column` of the operation that ends on this line of IR; "" where it is not known."""
        where = line.rpartition("loc(")[2]
        # Of a call site, the callee's place comes first. Aliases stand for other aliases.
        for _ in range(len(self._aliases) + 1):
            for file, row, column in _FILE_LINE.findall(where):
                if file.endswith(".py") or "/" in file:
                    return f"{file}:{row}:{column}"
            inner = _REFERENCE.search(where)
            if inner is None:
                break
            where = self._aliases.get(inner[0], "")
        return ""


def line_of(place: str) -> str:
    """`file:line` of a `file:line:column`."""
    return place.rpartition(":")[0]
