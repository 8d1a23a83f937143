"""The list of kernels that must compile (kernels.toml), and what it leaves out."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomlkit

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("kernels.toml")


@dataclass(frozen=True)
class Kernel:
    """One row of the list.

    Attributes:
        file: below the checkout.
        name: of the function.
        signatures: for each time that it is compiled, types and constants, as
            `python -m triton_dist compile --signature` takes them.
        staging: where aclshmem's staging buffer is, as its `--staging` takes it.
        options: compiler options.
        instead: by the beginning of a SoC's name, what is added to each signature there: tiles that fit it.
    """

    file: str
    name: str
    signatures: Sequence[str] = ("",)
    staging: str = "end"
    options: Mapping[str, Any] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)

    def signatures_for(self, soc: str) -> Iterator[tuple[str, str]]:
        """What to call each compilation, and its signature for the SoC: what is said later in a signature wins."""
        added = [text for prefix, text in self.instead.items() if soc.startswith(prefix)]
        usual = set(self.signatures[0].split(", "))
        for signature in self.signatures:
            differs = [part for part in signature.split(", ") if part not in usual]
            suffix = f"[{', '.join(differs)}]" if differs else ""
            yield f"{Path(self.file).name}::{self.name}{suffix}", ", ".join(filter(None, [signature, *added]))


@dataclass(frozen=True)
class Listing:
    """What the list says.

    Attributes:
        targets: the SoCs.
        may_be_blocked: beginnings of names of SoCs for which the compiler may give up.
        files: patterns of the files whose kernels must all be in `kernels` or `left_out`.
        kernels: those that must compile.
        left_out: `file::kernel`, or a file, with the reason.
    """

    targets: Sequence[str]
    may_be_blocked: Sequence[str]
    files: Sequence[str]
    kernels: Sequence[Kernel]
    left_out: Mapping[str, str]


def read(path: Path = LIST) -> Listing:
    """The list in the checkout."""
    text: dict[str, Any] = tomlkit.parse(path.read_text()).unwrap()
    return Listing(
        targets=text["targets"],
        may_be_blocked=text["may_be_blocked"],
        files=text["files"],
        kernels=[Kernel(**row) for row in text["kernel"]],
        left_out=text["left_out"],
    )


def written(listing: Listing) -> Iterator[str]:
    """`file::kernel` of each kernel at the top level of the files that the list is about; parts of kernels too."""
    for pattern in listing.files:
        for file in sorted(ROOT.glob(pattern)):
            for node in ast.parse(file.read_text()).body:
                if isinstance(node, ast.FunctionDef) and any("jit" in ast.unparse(d) for d in node.decorator_list):
                    yield f"{file.relative_to(ROOT)}::{node.name}"
