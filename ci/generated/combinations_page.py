"""docs/combinations.md: what goes together on Ascend hosts, and what the simulator environment is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ci.pins.file import Pins
from triton_dist.commands.env import tables

PATH = "docs/combinations.md"

_COLUMNS = ("chip", "SoCs", "CANN", "triton-ascend", "torch_npu", "system", "Python", "image here")


def render() -> str:
    """The whole page."""
    pins = Pins(Path(__file__).resolve().parents[2]).tables
    python, ascend = pins["python"], pins["ascend"]
    return _PAGE.format(
        combinations=tables.markdown(
            _COLUMNS, [_row(pins, each, chip) for each in pins["combinations"] for chip in each["chips"]]
        ),
        simulator=tables.markdown(
            ("part", "version"),
            [
                ("Python", " or ".join(python["supported"])),
                *((name, python[name]) for name in ("torch", "triton-ascend", "ascendnpu-ir", "numpy")),
                ("LLVM and MLIR", pins["toolchain"]["llvm"]),
                ("base of the image `sim`", f"`{pins['images']['sim']}`, Python {pins['images']['sim-python']}"),
            ],
        ),
        image=tables.markdown(
            ("part", "version"),
            [
                *((name, ascend[name]) for name in ("cann", "torch", "torch_npu", "python")),
                *((f"sources of {name}", release) for name, release in pins["sources"].items()),
            ],
        ),
    )


def _row(pins: dict[str, Any], combination: dict[str, Any], chip: str) -> tuple[str, ...]:
    return (
        chip,
        ", ".join(f"`{pattern}`" for pattern in pins["chips"][chip]),
        combination["cann"],
        combination["triton-ascend"],
        " or ".join(combination["torch_npu"]),
        ", ".join(combination["os"]),
        ", ".join(combination["python"]),
        "yes" if combination["triton-ascend"] == pins["python"]["triton-ascend"] else "no",
    )


_PAGE = """\
<!-- Written by `nox -s generate` from docker/versions.toml. -->

# What goes together

`python -m triton_dist doctor` holds what a host has against this table.

{combinations}

"image here": the combination has the triton-ascend that this package is made for.

## The image for NPUs

{image}

## The simulator

{simulator}
"""
