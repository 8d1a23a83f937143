"""Reads `npu-smi info -t topo`: the matrix of how NPUs are linked, and the cores near each."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LABEL = re.compile(r"([A-Za-z][A-Za-z_-]*)([0-9]{1,4})")
_LINK = re.compile(r"[A-Z][A-Z0-9_]*")
_SELF = "X"


@dataclass(frozen=True)
class Topology:
    """The matrix.

    Attributes:
        by: what its rows are numbered by: "npu" ids, or "phy" for numbers of device nodes.
        links: (row, column) -> how they are linked, in the matrix's word: HCCS, SIO, PIX, SYS and others.
        cores: row -> the host's cores near it, as text; those on one NUMA node have the same.
        not_understood: lines that are none of those known, as they stand.
    """

    by: str
    links: dict[tuple[int, int], str]
    cores: dict[int, str]
    not_understood: tuple[str, ...]


def parse_topology(text: str) -> Topology:
    """Reads `text`, whatever it is: what makes no sense is in `not_understood`."""
    kind = ""
    columns: list[int] = []
    links: dict[tuple[int, int], str] = {}
    cores: dict[int, str] = {}
    not_understood: list[str] = []
    for line in text.splitlines():
        words = line.split()
        if not words:
            continue
        if words[0].lower().startswith("legend"):
            # What follows says in words what the abbreviations mean.
            break
        labels = [match for word in words if (match := _LABEL.fullmatch(word))]
        if not columns and labels and labels[0].string == words[0]:
            kind = labels[0][1].lower()
            columns = [int(label[2]) for label in labels]
        elif columns and (row := _row(words, kind, columns)):
            number, found, rest = row
            links |= {(number, column): link for column, link in zip(columns, found, strict=True) if link != _SELF}
            if rest:
                cores[number] = rest
        else:
            not_understood.append(line)
    return Topology("phy" if kind.startswith("phy") else "npu", links, cores, tuple(not_understood))


def _row(words: list[str], kind: str, columns: list[int]) -> tuple[int, list[str], str] | None:
    """The number, links and near cores of a line; None if it is no row of the matrix."""
    label = _LABEL.fullmatch(words[0])
    links = words[1 : 1 + len(columns)]
    if label is None or label[1].lower() != kind or int(label[2]) not in columns or len(links) != len(columns):
        return None
    if not all(map(_LINK.fullmatch, links)):
        return None
    return int(label[2]), links, "".join(words[1 + len(columns) :])
