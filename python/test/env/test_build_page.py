"""build.md describes what is there: its variables, its commands, and the files that it names."""

from __future__ import annotations

import re
import subprocess
import sys

from _build_backend import checkout
from triton_dist import env

PAGE = (checkout.ROOT / "build.md").read_text()


def test_it_names_no_variable_that_is_not_known() -> None:
    named = re.findall(r"`([A-Z]+_[A-Z0-9_]+)[`=]", PAGE) + re.findall(r"^\$ ([A-Z0-9_]+)=", PAGE, re.MULTILINE)
    assert len(named) > 5
    assert {name for name in named if not name.startswith("PIP_")} <= set(env.REGISTRY)


def test_the_commands_of_the_environment_run() -> None:
    commands = re.findall(r"^\$ python (-m triton_dist .*?)(?: +#.*)?$", PAGE, re.MULTILINE)
    # What mends things has a test of its own, where there is nothing of anybody's to be mended.
    commands.remove("-m triton_dist doctor --fix")
    assert len(commands) == 4
    for command in commands:
        result = subprocess.run([sys.executable, *command.split()], capture_output=True, text=True, check=False)
        # The environment of whoever runs the tests may have something to be found.
        assert result.returncode in (0, 1), result.stderr
        assert result.stdout


def test_sessions_named_on_the_page_exist() -> None:
    noxfile = (checkout.ROOT / "noxfile.py").read_text()
    sessions = {name.replace("_", "-") for name in re.findall(r"^def (\w+)\(session", noxfile, re.MULTILINE)}
    assert set(re.findall(r"nox -s ([\w-]+)", PAGE)) <= sessions


def test_links_lead_to_files_and_headings() -> None:
    for target, _, heading in (link.partition("#") for link in re.findall(r"\]\(([^):]+)\)", PAGE)):
        page = checkout.ROOT / target
        assert page.exists(), target
        headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE) if heading else []
        assert not heading or heading in [text.lower().replace(" ", "-") for text in headings]
