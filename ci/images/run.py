"""Runs a session inside an image: with the checkout, and with exactly what of the host's the session needs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import nox

from _build_backend.checkout import ROOT, env
from ci import report
from ci.environment import own_arguments
from ci.images import build, engine
from ci.installation import BUILD_ROOT
from triton_dist.devices import nodes
from triton_dist.testing.leases.directory import LeaseDirectory

_HOME = "/home/triton"
_MANAGERS = ("davinci_manager", "devmm_svm", "hisi_hdc")
# What the driver installs on the host and programs in a container use.
_OF_DRIVER = (
    *("/usr/local/dcmi", "/usr/local/bin/npu-smi", "/usr/local/Ascend/driver/lib64"),
    *("/usr/local/Ascend/driver/version.info", "/etc/ascend_install.info"),
)
# Collectives of one rank; torch's data loaders take as much.
_SHM_OF_A_RANK = 256 << 20


def run(session: nox.Session) -> None:
    """Runs the session that the arguments name, with the arguments that follow it."""
    parser = argparse.ArgumentParser(prog="nox -s docker --")
    parser.add_argument("--target", choices=build.TARGETS, default="sim", help="which image")
    parser.add_argument("--chip", help="for which chip an image for NPUs is, such as 910b")
    parser.add_argument("--os", help="which system an image for NPUs has; by default the first")
    parser.add_argument("--dry-run", action="store_true", help="print the command")
    parser.add_argument("session", help="which session to run")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    parsed = parser.parse_args(own_arguments(session))
    image = build.choose(session, parsed.target, parsed.chip, parsed.os)
    docker = engine.find(session, builds=False, dry=parsed.dry_run)
    if not parsed.dry_run and not docker.has_image(image.name):
        chip = f" --chip {parsed.chip}" if parsed.chip else ""
        session.error(f"there is no image {image.name}: nox -s docker-build -- --target {parsed.target}{chip}")
    inner = [f"{ROOT}/noxfile.py", "-s", parsed.session, *(["--", *parsed.arguments] if parsed.arguments else [])]
    with report.step(session.name, f"{parsed.session} in {image.name}"):
        docker.run(session, "run", *options(image.tag, dry=parsed.dry_run), image.name, "nox", "-f", *inner)


def options(tag: str, *, dry: bool) -> list[str]:
    """Of `docker run`: who runs there, what is mounted, and which devices there are."""
    # Built there with that system's compiler and libraries: not where the host's builds are.
    private = BUILD_ROOT / "docker" / tag
    if not dry:
        for folder in ("build", "cache"):
            (private / folder).mkdir(parents=True, exist_ok=True)
    words = ["--rm", "--init", *(["--interactive", "--tty"] if sys.stdin.isatty() else [])]
    # As the user, so that what is written belongs to the user; in group 0, to which the image's environment belongs.
    words += ["--user", f"{os.getuid()}:{os.getgid()}", "--group-add", "0", "--env", f"HOME={_HOME}"]
    words += ["--workdir", str(ROOT), "--volume", f"{ROOT}:{ROOT}"]
    words += ["--volume", f"{private / 'build'}:{ROOT / 'build'}", "--volume", f"{private / 'cache'}:{_HOME}/.cache"]
    words += ["--shm-size", str(env.TRITON_DIST_SIM_NPUS.get() * _SHM_OF_A_RANK)]
    lease = LeaseDirectory.of_this_host().path
    if not dry:
        with LeaseDirectory.of_this_host().usable():
            os.close(LeaseDirectory.of_this_host().open("doctor", 1))
    words += ["--volume", f"{lease}:{lease}", "--env", f"TRITON_DIST_LEASE_DIR={lease}"]
    return [*words, *_devices(), *_variables()]


def _devices() -> Iterator[str]:
    """The NPUs of this host, and what their driver brings; nothing where there are none."""
    physical = nodes.physical_ids()
    if not physical:
        return
    first = Path(nodes.path(physical[0]))
    for node in (*map(nodes.path, physical), *(str(first.with_name(name)) for name in _MANAGERS)):
        if Path(node).exists():
            yield from ("--device", node)
    for path in _OF_DRIVER:
        if Path(path).exists():
            yield from ("--volume", f"{path}:{path}:ro")
    # HCCL talks over the host's interfaces.
    yield "--network=host"


def _variables() -> Iterator[str]:
    """The variables that are set and act inside, by name: docker takes the values from its own environment."""
    for variable in env.REGISTRY.values():
        # A path of the host is none of the container's.
        if variable.is_set() and variable.kind not in ("directory", "file"):
            yield from ("--env", variable.name)
