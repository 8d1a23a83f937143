"""Builds an image: with pins as arguments and labels, and everything that it installs at hand."""

from __future__ import annotations

import argparse
import dataclasses
import subprocess

import nox

from _build_backend.checkout import ROOT, env, versions
from ci import report
from ci.environment import own_arguments
from ci.images import base, engine, wheelhouse
from ci.images.matrix import Image, ascend, sim
from ci.installation import BUILD_ROOT

TARGETS = ("sim", "ascend")


def run(session: nox.Session) -> None:
    """Builds the image that the arguments of the session ask for."""
    parser = argparse.ArgumentParser(prog="nox -s docker-build --")
    parser.add_argument("--target", choices=TARGETS, required=True, help="which image")
    parser.add_argument("--chip", help="for which chip an image for NPUs is, such as 910b")
    parser.add_argument("--os", help="which system an image for NPUs has, such as ubuntu22.04; by default the first")
    parser.add_argument("--stage", help="stop at this stage of the Dockerfile; the image is called after it")
    parser.add_argument("--base", metavar="IMAGE", help="start from this local image, in place of the pinned one")
    parser.add_argument("--builder", metavar="IMAGE", help="build the wheel for NPUs in this image, likewise")
    parser.add_argument("--dry-run", action="store_true", help="print the command")
    parsed = parser.parse_args(own_arguments(session))
    image = choose(session, parsed.target, parsed.chip, parsed.os)
    docker = engine.find(session, builds=True, dry=parsed.dry_run)
    given = {name: value for name, value in ((image.base, parsed.base), ("BUILDER", parsed.builder)) if value}
    arguments = {**image.arguments, **given}
    for name in {image.base, "BUILDER"} & (arguments.keys() - given.keys()):
        arguments[name] = base.ensure(session, docker, arguments[name], offline=env.TRITON_OFFLINE_BUILD.get())
    if "PIP_NO_INDEX" in arguments and env.TRITON_OFFLINE_BUILD.get():
        arguments["PIP_NO_INDEX"] = "1"
    if image.target == "sim":
        wheelhouse.fill_sim(session, dry=parsed.dry_run)
    for folder in ("sources", "wheelhouse"):  # docker wants what it binds to be there
        (BUILD_ROOT / folder).mkdir(parents=True, exist_ok=True)
    image = dataclasses.replace(image, arguments=arguments)
    if parsed.stage:
        image = dataclasses.replace(image, tag=f"{image.tag}-{parsed.stage}")
    with report.step(session.name, f"image {image.name}"):
        docker.run(session, *command(image, parsed.stage or image.target))


def choose(session: nox.Session, target: str, chip: str | None, system: str | None) -> Image:
    """The image of a target, chip and system; ends the session where docker/versions.toml allows none."""
    pins = versions()
    if target == "sim":
        return sim(pins)
    allowed = list(ascend(pins))
    tags = [image.tag.removeprefix("ascend-") for image in allowed]
    for image in allowed:
        if image.labels["triton-dist.chip"] == chip and image.labels["triton-dist.os"] == (system or _system(image)):
            return image
    asked = f"--chip {chip}" + (f" --os {system}" if system else "")
    return session.error(f"{asked} is none of the images that docker/versions.toml allows: {', '.join(tags)}")


def _system(image: Image) -> str:
    return image.labels["triton-dist.os"]


def command(image: Image, stage: str) -> list[str]:
    """Of docker: the build of an image, up to a stage of its Dockerfile."""
    words = ["build", "--network=host", "--target", stage, "--tag", image.name]
    words += ["--file", str(ROOT / "docker" / image.target / "Dockerfile")]
    for name, value in image.arguments.items():
        words += ["--build-arg", f"{name}={value}"]
    for name, value in {**image.labels, "org.opencontainers.image.revision": _revision()}.items():
        words += ["--label", f"{name}={value}"]
    return [*words, str(ROOT)]


def _revision() -> str:
    asked = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    done = subprocess.run(asked, check=False, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"
