"""The images that there are, from docker/versions.toml: a name, a Dockerfile's target, and what it is told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

NAME = "triton-distributed-ascend"
PLATFORMS = ("linux/amd64", "linux/arm64")
# What aclshmem's build must be told of a chip.
_ACLSHMEM_FLAGS = {"950": "-soc_type Ascend950"}


@dataclass(frozen=True)
class Image:
    """One image.

    Attributes:
        target: `sim` or `ascend`: the folder of its Dockerfile, and its last stage.
        tag: what follows the colon of its name.
        base: the argument that names the image that it starts from, of those in `arguments`.
        arguments: the build arguments.
        labels: what it says of itself.
    """

    target: str
    tag: str
    base: str
    arguments: dict[str, str]
    labels: dict[str, str]

    @property
    def name(self) -> str:
        """Its full name."""
        return f"{NAME}:{self.tag}"


def sim(pins: dict[str, Any]) -> Image:
    """The image without CANN."""
    images, llvm = pins["images"], pins["toolchain"]["llvm"]
    arguments = {"BASE": images["sim"], "PYTHON": images["sim-python"], "LLVM": llvm}
    return Image("sim", "sim", "BASE", arguments, _labels("sim", pins, "python", "toolchain"))


def ascend(pins: dict[str, Any]) -> Iterator[Image]:
    """An image for each chip and system of the combination that [ascend] chooses."""
    chosen, python = pins["ascend"], pins["python"]
    for combination in pins["combinations"]:
        if combination["triton-ascend"] != python["triton-ascend"] or combination["cann"] != chosen["cann"]:
            continue
        for chip in combination["chips"]:
            for system in combination["os"]:
                tag = f"{chosen['cann']}-{chip}-{system}-py{chosen['python']}"
                arguments = {
                    "BUILDER": pins["images"]["manylinux"],
                    "CANN": f"{pins['images']['cann']}:{tag}",
                    "PYTHON": chosen["python"],
                    "LLVM": pins["toolchain"]["llvm"],
                    "TORCH": chosen["torch"],
                    "TORCH_NPU": chosen["torch_npu"],
                    "TRITON_ASCEND": python["triton-ascend"],
                    "ACLSHMEM": pins["sources"]["aclshmem"],
                    "ACLSHMEM_FLAGS": _ACLSHMEM_FLAGS.get(chip, ""),
                    "CHIP": chip,
                    # Set where nothing may be downloaded: build/wheelhouse has everything then.
                    "PIP_NO_INDEX": "",
                }
                labels = _labels("ascend", pins, "python", "toolchain", "ascend", "sources")
                chip_and_system = {"triton-dist.chip": chip, "triton-dist.os": system}
                yield Image("ascend", f"ascend-{chip}-{system}", "CANN", arguments, {**labels, **chip_and_system})


def _labels(target: str, pins: dict[str, Any], *used: str) -> dict[str, str]:
    """OCI's keys, and every pin that has to do with the image."""
    # torch, numpy and the like of the simulator environment are not those of an image for NPUs.
    skipped = {"torch", "numpy", "ascendnpu-ir"} if target == "ascend" else set()
    return {
        "org.opencontainers.image.title": f"{NAME} {target}",
        "org.opencontainers.image.licenses": "Apache-2.0",
        **{
            f"triton-dist.{table}.{name}": value if isinstance(value, str) else " ".join(value)
            for table in used
            for name, value in pins[table].items()
            if not (table == "python" and name in skipped)
        },
    }
