"""Assert statements that show their values, in a rank as in the test's own process.

pytest's rewriting hook is made for a session with its whole configuration. A rank has none; it gets a stand-in that
answers the few questions which the hook and pytest's comparisons ask, with what the session would have answered.
"""

from __future__ import annotations

import importlib.abc
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

# All that pytest's assertion code asks the ini-file for, in any version; a version that lacks one never asks.
_INI_NAMES = (
    "python_files",
    "enable_assertion_pass_hook",
    "truncation_limit_lines",
    "truncation_limit_chars",
    "assertion_text_diff_style",
)


@dataclass(frozen=True)
class AssertionSettings:
    """What a rank has to know of the session.

    Attributes:
        ini: values of the ini-file, by name.
        verbosity: how much an assertion tells.
        rewritten: names of modules that plugins have registered for rewriting.
    """

    ini: dict[str, Any]
    verbosity: int
    rewritten: tuple[str, ...]


def settings_of(config: pytest.Config) -> AssertionSettings | None:
    """The settings of a session; None if its assert statements stay as they are."""
    if config.getoption("assertmode", "plain") != "rewrite":
        return None
    ini = {}
    for name in _INI_NAMES:
        try:
            ini[name] = config.getini(name)
        except (ValueError, KeyError):
            continue  # unknown to this version
    # Passing hooks have nobody to call in a rank.
    ini["enable_assertion_pass_hook"] = False
    marked = getattr(config.pluginmanager.rewrite_hook, "_must_rewrite", ())
    return AssertionSettings(ini, config.get_verbosity("assertions"), tuple(marked))


def install(settings: AssertionSettings) -> importlib.abc.Loader:
    """Lets assert statements of modules imported from now on explain themselves; returns their loader."""
    from _pytest.assertion import AssertionState, rewrite, util

    config: Any = _RankConfig(settings)
    config.stash[rewrite.assertstate_key] = AssertionState(config, "rewrite")
    hook = rewrite.AssertionRewritingHook(config)
    hook._must_rewrite.update(settings.rewritten)
    sys.meta_path.insert(0, hook)
    util._config = config
    util._reprcompare = lambda op, left, right: _compare(config, op, left, right)
    return hook


def _compare(config: Any, op: str, left: object, right: object) -> str | None:
    from _pytest.assertion import pytest_assertrepr_compare

    lines = pytest_assertrepr_compare(config, op, left, right)
    if not lines:
        return None
    # The form that the rewritten assert statement expects: one line, with marks, fit for the % operator.
    return "\n~".join(line.replace("\n", "\\n") for line in lines).replace("%", "%%")


class _RankConfig:
    """Answers as the session's `pytest.Config` would."""

    def __init__(self, settings: AssertionSettings) -> None:
        import pytest
        from pluggy._tracing import TagTracer

        self._settings = settings
        self.stash = pytest.Stash()
        self.trace = TagTracer()
        self.trace.root = self.trace.get("rank")  # type: ignore[attr-defined]
        self.pluginmanager = self

    def getini(self, name: str) -> Any:
        try:
            return self._settings.ini[name]
        except KeyError:
            raise ValueError(f"unknown configuration value: {name!r}") from None

    def get_verbosity(self, kind: str | None = None) -> int:
        return self._settings.verbosity

    def has_plugin(self, name: str) -> bool:
        """No terminal reporter, for one: texts are to stay without colours."""
        return False

    def get_terminal_writer(self) -> _RankConfig:
        return self

    def _highlight(self, source: str, lexer: str = "python") -> str:
        return source
