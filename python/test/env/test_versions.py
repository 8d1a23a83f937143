"""docker/versions.toml pins; what repeats a pin must say the same."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from _build_backend import checkout

PROJECT = checkout.read_toml(checkout.PYTHON_DIRECTORY / "pyproject.toml")["project"]
PINS = checkout.versions()["python"]


@pytest.mark.parametrize("name", ["numpy", "triton-ascend"])
def test_dependency_has_the_pinned_version(name: str) -> None:
    requirements = {r.name: r for r in map(Requirement, PROJECT["dependencies"])}
    assert requirements[name].specifier == SpecifierSet(f"=={PINS[name]}")


def test_no_other_dependency_is_pinned() -> None:
    extras = [text for group in PROJECT["optional-dependencies"].values() for text in group]
    pinned = {r.name for r in map(Requirement, [*PROJECT["dependencies"], *extras]) if "==" in str(r.specifier)}
    assert pinned == {"numpy", "triton-ascend"}


def test_python_versions_agree() -> None:
    allowed = SpecifierSet(PROJECT["requires-python"])
    assert [v for v in (f"3.{minor}" for minor in range(8, 16)) if v in allowed] == PINS["supported"]
