"""What a build was made from: written beside what was built, and compared before the next one.

`build/<python>-<build type>.record.json` has the pins, the commit, the flags, a hash of every input outside csrc (csrc
itself is CMake's business), a hash of the sources and of every result, and what each stage took.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _build_backend import settings
from _build_backend.checkout import PYTHON_DIRECTORY, ROOT, versions


class BuildRecord:
    """The record of one Python and build type.

    Attributes:
        path: where it is kept.
    """

    def __init__(self, directory: Path, cache_tag: str, build_type: str) -> None:
        self.path = directory / f"{cache_tag}-{build_type}.record.json"

    def read(self) -> dict[str, Any]:
        """What was written last; nothing if that is none, or not readable."""
        try:
            written = json.loads(self.path.read_text())
        except (OSError, ValueError):
            return {}
        return written if isinstance(written, dict) else {}

    def changes(self, now: dict[str, str]) -> list[str]:
        """The names of the inputs that are others than those of the last build; all of them if there was none."""
        before = self.read().get("inputs", {})
        return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))

    def forget(self) -> None:
        """What is built next counts as built only once `write` has been called."""
        self.path.unlink(missing_ok=True)

    def write(
        self, now: dict[str, str], resolved: settings.BuildSettings, native: Path, seconds: dict[str, float]
    ) -> None:
        """Notes that `native`, the directory of what was built, was made from these inputs."""
        record = {
            "made": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "commit": _git("rev-parse", "HEAD"),
            "changed_since_commit": bool(_git("status", "--porcelain", "--untracked-files=no")),
            "pins": {name: table for name, table in versions().items() if name in ("python", "toolchain")},
            "flags": {"build_type": resolved.build_type, "defines": resolved.defines, "arguments": resolved.cmake_args},
            "summary": resolved.summary,
            "inputs": now,
            "sources": _digest(sorted(path for path in (ROOT / "csrc").rglob("*") if path.is_file())),
            "results": {str(path.relative_to(native)): _digest([path]) for path in _results(native)},
            "seconds": {name: round(value, 1) for name, value in seconds.items()},
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(record, indent=1) + "\n")


def inputs(resolved: settings.BuildSettings, prefix: str) -> dict[str, str]:
    """Name to text or hash of everything outside csrc that an installation into `prefix` depends on."""
    backend = sorted((PYTHON_DIRECTORY / "_build_backend").glob("*.py"))
    files = [PYTHON_DIRECTORY / "pyproject.toml", *sorted(PYTHON_DIRECTORY.glob("*.pth")), *backend]
    return {
        "environment": prefix,
        "build type": resolved.build_type,
        "cmake arguments": json.dumps(resolved.cmake_args),
        **{f"define {name}": value for name, value in resolved.defines.items()},
        **{str(path.relative_to(ROOT)): _digest([path]) for path in files},
    }


def _results(native: Path) -> Iterator[Path]:
    for folder in ("bin", "lib"):
        yield from sorted(path for path in (native / folder).glob("*") if path.is_file())


def _digest(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _git(*arguments: str) -> str:
    """What git says of the checkout; nothing where there is no git, or no repository."""
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], check=False, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip()
