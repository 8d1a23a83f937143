"""The docker client, and what it can do."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import nox

from _build_backend.checkout import env
from ci import report


@dataclass(frozen=True)
class Engine:
    """A docker client whose daemon answers.

    Attributes:
        client: the program.
        variables: what its builds need in their environment.
        dry: commands are printed and not run.
    """

    client: str
    variables: Mapping[str, str] = field(default_factory=dict)
    dry: bool = False

    def run(self, session: nox.Session, *arguments: str) -> None:
        """Runs a command of docker's; a failure ends the session."""
        if self.dry:
            print(shlex.join([self.client, *arguments]), flush=True)
        else:
            session.run(self.client, *arguments, env=dict(self.variables), external=True)

    def has_image(self, name: str) -> bool:
        """Whether the image is there, on this host."""
        return not self.dry and self._quietly("image", "inspect", name)

    def pull(self, name: str) -> bool:
        """Whether the image could be had from its registry."""
        report.note(f"docker pull {name}")
        return self._quietly("pull", "--quiet", name)

    def _quietly(self, *arguments: str) -> bool:
        done = subprocess.run([self.client, *arguments], check=False, capture_output=True, stdin=subprocess.DEVNULL)
        return done.returncode == 0


def find(session: nox.Session, *, builds: bool, dry: bool) -> Engine:
    """A client of PATH that reaches a daemon and, for `builds`, has BuildKit: with buildx, or one of before 23.

    Ends the session where there is none.
    """
    clients = list(_clients())
    if dry:
        return Engine(clients[0] if clients else "docker", dry=True)
    if not clients:
        session.error("docker is not installed: apt-get install docker.io")
    reason = ""
    for client in clients:
        answer = _ask(client, "version", "--format", "{{.Client.Version}}")
        if answer.returncode:
            said = answer.stderr.strip().splitlines() or [f"exit status {answer.returncode}"]
            reason = reason or f"{client}: {said[-1]}"
        elif not builds:
            return Engine(client)
        # From 23 on, the client builds with buildx or without BuildKit.
        elif int(answer.stdout.split(".")[0]) < 23 or _ask(client, "buildx", "version").returncode == 0:
            return Engine(client, {"DOCKER_BUILDKIT": "1"})
        else:
            reason = f"{client} {answer.stdout.strip()} has no buildx: apt-get install docker-buildx"
    return session.error(f"{reason} (python -m triton_dist doctor --only docker)")


def _clients() -> Iterator[str]:
    for directory in env.child_environ()["PATH"].split(os.pathsep):
        if found := shutil.which("docker", path=directory):
            yield str(Path(found))


def _ask(client: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command: Sequence[str] = (client, *arguments)
    return subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
