"""Hosts with NPUs that are not there: directories of device nodes, and an npu-smi that says what it is told to."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

OUTPUTS = Path(__file__).parents[1] / "data" / "npu-smi"
# Variables of the machine that runs the tests, which a host of theirs does not have.
NO_CANN = ("ASCEND_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "TRITON_DIST_BACKEND")


def output(name: str) -> str:
    """What a real npu-smi printed."""
    return (OUTPUTS / f"{name}.txt").read_text()


class Host:
    """Directories that stand for /dev and for a place on the PATH.

    Attributes:
        environ: the variables by which a process takes them for the host's.
    """

    def __init__(self, root: Path) -> None:
        self._nodes = root / "dev"
        self._bin = root / "bin"
        self._nodes.mkdir(parents=True)
        self._bin.mkdir()
        (self._nodes / "davinci_manager").touch()
        self.npu_smi_file = self._bin / "npu-smi"
        self.environ = {
            "PATH": f"{self._bin}:{os.environ['PATH']}",
            "TRITON_DIST_DEVICE_DIR": str(self._nodes),
        }

    def nodes(self, numbers: Iterable[int]) -> None:
        """These device nodes, and no others."""
        for node in self._nodes.glob("davinci[0-9]*"):
            node.unlink()
        for number in numbers:
            (self._nodes / f"davinci{number}").touch()

    def npu_smi(self, info: str, mapping: str | None = None, topology: str | None = None) -> None:
        """An npu-smi that prints these, and fails for questions that it has no text for."""
        texts = {"info": info, "info -m": mapping, "info -t topo": topology}
        cases = []
        for number, (question, text) in enumerate(texts.items()):
            if text is not None:
                file = self._bin / f"answer{number}"
                # In one piece: it may be printed this very moment.
                (self._bin / "next").write_text(text)
                (self._bin / "next").rename(file)
                cases.append(f'"{question}") cat "{file}" ;;')
        self.npu_smi_script("\n".join(['case "$*" in', *cases, "*) echo 'unknown question'; exit 1 ;;", "esac"]))

    def npu_smi_script(self, body: str) -> None:
        """An npu-smi that is a shell script."""
        self.program("npu-smi", f"#!/bin/sh\n{body}\n")

    def program(self, name: str, text: str) -> None:
        """A program on the PATH."""
        file = self._bin / "next"
        file.write_text(text)
        file.chmod(0o755)
        file.rename(self._bin / name)

    def a2(self) -> None:
        """Eight 910B3, of which one is busy and one has a warning."""
        self.nodes(range(8))
        self.npu_smi(output("a2-8x910b3"), topology=output("topo-8x910b3"))

    def a3(self) -> None:
        """Two cards with two chips each."""
        self.nodes(range(4))
        self.npu_smi(output("a3-2x-dual-die"))
