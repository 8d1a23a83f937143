"""What repeats a pin outside docker/versions.toml: where it may stand, and what it must say there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ci.pins.file import Pins

_Value = str | list[str]

# Where pins are repeated: read by people, by pip, by docker, by a forge. Written pages are the generator's business.
_FILES = (
    *("README.md", "build.md", "docs/*.md", "docker/**/*Dockerfile*", "docker/**/*.hcl", ".dockerignore"),
    *("python/pyproject.toml", "python/triton_dist/runtime/torch_device/build.py", "mypy.ini", "ruff.toml"),
    *("ci/nox", "ci/bootstrap", ".ci/run", ".github/workflows/*.yml"),
)
_GENERATED = ("docs/environment.md", "docs/combinations.md")


@dataclass(frozen=True)
class Repeat:
    """One way in which a pin is repeated.

    Attributes:
        pin: the name of the pin.
        pattern: what it looks like; its one group is what depends on the pin.
        files: files that must have it; any other of _FILES may.
        render: the pin's text there, given what stands there now; by default as many numbers of the version.
    """

    pin: str
    pattern: str
    files: tuple[str, ...] = ()
    render: Callable[[_Value, str], str] | None = None

    def text(self, pins: Pins, found: str) -> str:
        """What should stand where `found` does."""
        return (self.render or _as_long)(pins.value(self.pin), found)


@dataclass(frozen=True)
class Disagreement:
    """A place that does not say what the pin does."""

    file: str
    line: int
    repeat: Repeat
    found: str
    expected: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        if not self.found:
            return f"{where}: {self.repeat.pin} should be repeated here, as /{self.repeat.pattern}/"
        return f"{where}: {self.repeat.pin} is {self.expected} in docker/versions.toml, and {self.found} here"


def _as_long(value: _Value, found: str) -> str:
    """The version, cut to as many numbers as stand there."""
    assert isinstance(value, str)
    return ".".join(value.split(".")[: found.count(".") + 1])


def _exactly(value: _Value, _found: str) -> str:
    assert isinstance(value, str)
    return value


def _range(value: _Value, _found: str) -> str:
    return f">={value[0]},<3.{_minor(value[-1]) + 1}"


def _lowest(value: _Value, _found: str) -> str:
    return value[0]


def _highest(value: _Value, _found: str) -> str:
    return value[-1]


def _lowest_tag(value: _Value, _found: str) -> str:
    return f"py3{_minor(value[0])}"


def _words(value: _Value, found: str) -> str:
    """The versions joined by `or`, the latest first if it stands so."""
    numbers = sorted(map(_minor, value), reverse=_minor(found.split(" or ")[0]) > _minor(found.split(" or ")[-1]))
    return " or ".join(f"3.{number}" for number in numbers)


def _tuples(value: _Value, _found: str) -> str:
    return ", ".join(f"(3, {_minor(version)})" for version in value)


def _commands(value: _Value, _found: str) -> str:
    return " ".join(f"{name} /usr/bin/{name}" for name in (f"python{version}" for version in reversed(value)))


def _minor(version: str) -> int:
    return int(version.partition(".")[2])


_VERSION = r"([0-9]+(?:\.[0-9]+)*(?:\.post[0-9]+|rc[0-9]+)?)"

REPEATS: Sequence[Repeat] = (
    Repeat("python.torch", rf"\btorch=={_VERSION}", ("build.md",), _exactly),
    Repeat("python.torch", r'TESTED_TORCH = \("([0-9.]+)",\)', ("python/triton_dist/runtime/torch_device/build.py",)),
    Repeat("python.numpy", rf"\bnumpy=={_VERSION}", ("python/pyproject.toml",), _exactly),
    Repeat("python.triton-ascend", rf"\btriton-ascend=={_VERSION}", ("python/pyproject.toml", "build.md"), _exactly),
    Repeat("python.ascendnpu-ir", rf"\bascendnpu-ir=={_VERSION}", ("python/pyproject.toml",), _exactly),
    Repeat("ascend.torch_npu", rf"\btorch_npu=={_VERSION}", (), _exactly),
    Repeat("toolchain.llvm", r"/llvm-([0-9]+(?:\.[0-9]+)*)", ("build.md",)),
    Repeat("toolchain.llvm", r"LLVM and MLIR ([0-9]+(?:\.[0-9]+)*)", ("build.md",)),
    Repeat("python.supported", r'requires-python = "([^"]+)"', ("python/pyproject.toml",), _range),
    Repeat("python.supported", r"\bPython (3\.[0-9]+(?: or 3\.[0-9]+)+)", ("README.md", "build.md", "ci/nox"), _words),
    Repeat("python.supported", r"wheels up to Python (3\.[0-9]+)", ("build.md",), _highest),
    Repeat("python.supported", r"not in \((\(3.*?\))\)\)", ("ci/nox",), _tuples),
    Repeat("python.supported", r"candidate in (.*?) python3; do", ("ci/nox",), _commands),
    Repeat("python.supported", r"python_version = (3\.[0-9]+)", ("mypy.ini",), _lowest),
    Repeat("python.supported", r'target-version = "(py3[0-9]+)"', ("ruff.toml",), _lowest_tag),
)


def disagreements(root: Path, pins: Pins) -> Iterator[Disagreement]:
    """Every place that says something else than its pin, or nothing where it should."""
    texts = {file: (root / file).read_text() for file in _files(root)}
    for repeat in REPEATS:
        for file, text in texts.items():
            matches = list(re.finditer(repeat.pattern, text))
            if not matches and file in repeat.files:
                yield Disagreement(file, 0, repeat, "", "")
            for match in matches:
                expected = repeat.text(pins, match[1])
                if match[1] != expected:
                    yield Disagreement(file, text.count("\n", 0, match.start(1)) + 1, repeat, match[1], expected)
        for file in repeat.files:
            if file not in texts:
                yield Disagreement(file, 0, repeat, "", "")


def rewrite(root: Path, pins: Pins) -> list[str]:
    """Makes every place say what its pin does; gives the files that changed."""
    changed = []
    for file in _files(root):
        old = new = (root / file).read_text()
        for repeat in REPEATS:
            new = re.sub(repeat.pattern, partial(_replaced, repeat, pins), new)
        if new != old:
            (root / file).write_text(new)
            changed.append(file)
    return changed


def _replaced(repeat: Repeat, pins: Pins, match: re.Match[str]) -> str:
    start, end = match.start(1) - match.start(), match.end(1) - match.start()
    return match[0][:start] + repeat.text(pins, match[1]) + match[0][end:]


def _files(root: Path) -> list[str]:
    found = {str(path.relative_to(root)) for pattern in _FILES for path in root.glob(pattern) if path.is_file()}
    return sorted(found - set(_GENERATED))
