"""Runs in the environment itself, with nothing but the standard library: prints as JSON what it holds.

Arguments are requirements; those that are not satisfied are named in the answer.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
import sysconfig

try:
    from packaging.requirements import Requirement
except ImportError:
    from pip._vendor.packaging.requirements import Requirement  # type: ignore[assignment]


def main() -> None:
    """Prints the answer."""
    installed = {
        distribution.metadata["Name"].lower().replace("_", "-"): distribution.version
        for distribution in importlib.metadata.distributions()
        if distribution.metadata["Name"]
    }
    answer = {
        "prefix": sys.prefix,
        "cache_tag": sys.implementation.cache_tag,
        "purelib": sysconfig.get_path("purelib"),
        "distributions": installed,
        "unsatisfied": [text for text in sys.argv[1:] if not _satisfied(text, installed)],
        "redirect": _redirect(),
    }
    print(json.dumps(answer))


def _satisfied(text: str, installed: dict[str, str]) -> bool:
    requirement = Requirement(text)
    if requirement.marker is not None and not requirement.marker.evaluate():
        return True
    version = installed.get(requirement.name.lower().replace("_", "-"))
    return version is not None and requirement.specifier.contains(version, prereleases=True)


def _redirect() -> dict[str, str] | None:
    """Where the editable installation leads: its source package and its build directory."""
    for finder in sys.meta_path:
        source = getattr(finder, "known_source_files", {}).get("triton_dist")
        if source:
            return {"source": source, "build": getattr(finder, "path", "")}
    return None


main()
