"""build.md describes what is there: its table of variables, and the files that it names."""

from __future__ import annotations

import re

from _build_backend import checkout
from triton_dist import env

PAGE = (checkout.ROOT / "build.md").read_text()


def test_every_build_variable_is_on_the_page() -> None:
    here = {v.name for v in env.variables(env.BUILD) if v.acts_on != env.NOTHING}
    assert here <= set(re.findall(r"`([A-Z][A-Z0-9_]+)`", PAGE))


def test_the_table_names_no_other_variable() -> None:
    table = re.findall(r"^\| `([A-Z][A-Z0-9_]+)` \|", PAGE, re.MULTILINE)
    assert table
    assert set(table) <= {v.name for v in env.variables(env.BUILD)}


def test_sessions_named_on_the_page_exist() -> None:
    noxfile = (checkout.ROOT / "noxfile.py").read_text()
    sessions = {name.replace("_", "-") for name in re.findall(r"^def (\w+)\(session", noxfile, re.MULTILINE)}
    assert set(re.findall(r"nox -s ([\w-]+)", PAGE)) <= sessions


def test_links_lead_to_files() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", PAGE):
        assert (checkout.ROOT / target).exists(), target
