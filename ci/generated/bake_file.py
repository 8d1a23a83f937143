"""docker/bake.json: every image of the matrix, for `docker buildx bake`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ci.images import matrix
from ci.pins.file import Pins

PATH = "docker/bake.json"


def render() -> str:
    """The whole file."""
    pins = Pins(Path(__file__).resolve().parents[2]).tables
    images = [matrix.sim(pins), *matrix.ascend(pins)]
    targets = {image.tag.replace(".", "-"): _target(image) for image in images}
    groups = {
        "default": {"targets": ["sim"]},
        "ascend": {"targets": [name for name in targets if name != "sim"]},
    }
    return json.dumps({"group": groups, "target": targets}, indent=2) + "\n"


def _target(image: matrix.Image) -> dict[str, Any]:
    return {
        "context": ".",
        "dockerfile": f"docker/{image.target}/Dockerfile",
        "target": image.target,
        "tags": [image.name],
        "platforms": list(matrix.PLATFORMS),
        "args": image.arguments,
        "labels": image.labels,
    }
