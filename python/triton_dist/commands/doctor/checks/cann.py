"""CANN: whether it is there, in effect in this shell, and one that goes with torch_npu and triton-ascend."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from triton_dist import env
from triton_dist.commands.doctor.finding import Finding, Level, fail, ok
from triton_dist.commands.doctor.situation import Situation

_SCRIPTS = ("Ascend/cann/set_env.sh", "Ascend/ascend-toolkit/set_env.sh")
_VERSION_FILES = (
    *("*-linux/ascend_toolkit_install.info", "ascend_toolkit_install.info", "share/info/*/version.info"),
    *("compiler/version.info", "runtime/version.info", "version.info", "version.cfg"),
)
_VERSION = re.compile(r"^\s*version\s*=\s*\"?\[?\"?([0-9]+\.[\w.]+)", re.IGNORECASE | re.MULTILINE)


def look(situation: Situation) -> Iterator[Finding]:
    """Where it is, whether set_env.sh was sourced, and the pairs of docker/versions.toml."""
    must: Level = "FAIL" if situation.on_npus else "warn"
    home = env.ASCEND_HOME_PATH.text() or env.ASCEND_TOOLKIT_HOME.text()
    if not home:
        yield from _not_in_effect(situation, must)
        return
    if not Path(home).is_dir():
        yield Finding(
            must,
            f"ASCEND_HOME_PATH={home}, and that directory is not there",
            "libraries of CANN are not found: `libascendcl.so: cannot open shared object file`",
            "source the set_env.sh of the CANN that is installed",
        )
        return
    version = version_at(Path(home))
    if version is None:
        yield Finding(
            "warn",
            f"CANN at {home}, whose version is not known",
            "whether torch_npu and triton-ascend go with it cannot be told",
            f"look for the version in {home}, and compare with docs/combinations.md",
        )
    else:
        yield from _pairs(situation.versions["combinations"], version, home, must)


def _not_in_effect(situation: Situation, must: Level) -> Iterator[Finding]:
    roots = (Path("/usr/local"), Path.home())
    script = next((root / name for root in roots for name in _SCRIPTS if (root / name).is_file()), None)
    if script is not None:
        yield Finding(
            must,
            f"CANN is installed, and {script} has not been sourced in this shell",
            "its libraries and compilers are not found; each shell needs it, those of `docker exec` included",
            f"source {script}",
        )
    elif situation.on_npus:
        yield fail(
            "no CANN was found, neither in /usr/local/Ascend nor in ~/Ascend",
            "nothing runs on NPUs without it",
            "install CANN, or use an image that has it: nox -s docker-build -- --target ascend",
        )
    else:
        yield ok("no CANN, and simulated NPUs need none")


def version_at(home: Path) -> str | None:
    """The version of the CANN that is installed there; None where nothing tells it."""
    for pattern in _VERSION_FILES:
        for file in sorted(home.glob(pattern)):
            if found := _VERSION.search(file.read_text(errors="replace")):
                return found[1]
    # The directory is named after it, and a link called `latest` leads there.
    found = re.search(r"(?:^|-)([0-9]+\.[0-9]+[\w.]*)$", home.resolve().name)
    return found[1] if found else None


def _pairs(combinations: list[dict[str, Any]], cann: str, home: str, must: Level) -> Iterator[Finding]:
    triton, torch_npu = _installed("triton-ascend"), _installed("torch-npu")
    of_cann = [each for each in combinations if _is(cann, each["cann"])]
    parts = [f"triton-ascend {triton}"] if triton else []
    parts += [f"torch_npu {torch_npu}"] if torch_npu else []
    together = f"CANN {cann} at {home}" + (f" with {' and '.join(parts)}" if parts else "")
    if any(
        (triton is None or triton == each["triton-ascend"]) and (torch_npu is None or torch_npu in each["torch_npu"])
        for each in of_cann
    ):
        yield ok(together)
        return
    allowed = "; ".join(
        f"CANN {each['cann']} with triton-ascend {each['triton-ascend']} and torch_npu {' or '.join(each['torch_npu'])}"
        for each in (of_cann or combinations)
    )
    yield Finding(
        must,
        f"{together}: not known to go together",
        "kernels fail to compile or to load, late and with obscure errors",
        f"install what goes together: {allowed}",
    )


def _is(found: str, known: str) -> bool:
    """Whether a version that CANN's files state is a release: they add to it, as 8.5.0.B120 does."""
    return found == known or found.startswith((f"{known}.", f"{known}-"))


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name).split("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return None
