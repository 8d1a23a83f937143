"""Whether docker can be used; only the sessions `docker-build` and `docker` need it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

from triton_dist.commands.doctor.finding import Finding, ok, warn
from triton_dist.commands.doctor.situation import Situation

_SECONDS = 3.0
_WHY = "the sessions `docker-build` and `docker` need it; nothing else does"


def look(situation: Situation) -> Iterator[Finding]:
    """The client, and whether a daemon answers it."""
    del situation
    client = shutil.which("docker")
    if client is None:
        yield ok("no docker; only the sessions `docker-build` and `docker` need it")
        return
    command = [client, "version", "--format", "{{.Server.Version}}"]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=_SECONDS, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        yield warn(f"{client}: the daemon had not answered after {_SECONDS:.0f} s", _WHY, "systemctl restart docker")
        return
    except OSError as error:
        yield warn(f"{client} cannot be run ({error.strerror})", _WHY, "apt-get install docker.io")
        return
    if done.returncode == 0:
        yield ok(f"docker {done.stdout.strip()}")
        return
    said = (done.stderr or done.stdout).strip().splitlines()
    reason = said[-1] if said else f"exit status {done.returncode}"
    refused = "permission denied" in reason.lower()
    mend = "usermod -aG docker $USER, and log in again" if refused else "systemctl start docker (or, as root, dockerd)"
    yield warn(f"{client}: {reason}", _WHY, mend)
