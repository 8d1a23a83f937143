"""Builds an image: with pins as arguments and labels, and everything that it installs at hand."""

from __future__ import annotations

import argparse
import subprocess
from typing import Any

import nox

from _build_backend.checkout import ROOT, env, versions
from ci import report
from ci.environment import own_arguments
from ci.images import base, engine, wheelhouse

TARGETS = ("sim",)
_NAME = "triton-distributed-ascend"


def image(target: str) -> str:
    """The name of the image."""
    return f"{_NAME}:{target}"


def run(session: nox.Session) -> None:
    """Builds the image that the arguments of the session ask for."""
    parser = argparse.ArgumentParser(prog="nox -s docker-build --")
    parser.add_argument("--target", choices=TARGETS, required=True, help="which image")
    parser.add_argument("--base", metavar="IMAGE", help="start from this local image, in place of the pinned one")
    parser.add_argument("--dry-run", action="store_true", help="print the command")
    parsed = parser.parse_args(own_arguments(session))
    docker = engine.find(session, builds=True, dry=parsed.dry_run)
    pins = versions()
    start = parsed.base or base.ensure(session, docker, pins["images"]["sim"], offline=env.TRITON_OFFLINE_BUILD.get())
    wheelhouse.fill_sim(session, dry=parsed.dry_run)
    arguments = {"BASE": start, "PYTHON": pins["images"]["sim-python"], "LLVM": pins["toolchain"]["llvm"]}
    with report.step(session.name, f"image {image(parsed.target)}"):
        docker.run(session, *_command(parsed.target, arguments, pins))


def _command(target: str, arguments: dict[str, str], pins: dict[str, Any]) -> list[str]:
    words = ["build", "--network=host", "--target", target, "--tag", image(target)]
    words += ["--file", str(ROOT / "docker" / target / "Dockerfile")]
    for name, value in arguments.items():
        words += ["--build-arg", f"{name}={value}"]
    for name, value in labels(target, pins).items():
        words += ["--label", f"{name}={value}"]
    return [*words, str(ROOT)]


def labels(target: str, pins: dict[str, Any]) -> dict[str, str]:
    """What the image says of itself: OCI's keys, and every pin."""
    used = ("python", "toolchain") if target == "sim" else ("python", "toolchain", "ascend", "sources")
    of_pins = {
        f"triton-dist.{table}.{name}": value if isinstance(value, str) else " ".join(value)
        for table in used
        for name, value in pins[table].items()
    }
    return {
        "org.opencontainers.image.title": f"{_NAME} {target}",
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.revision": _revision(),
        **of_pins,
    }


def _revision() -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"
