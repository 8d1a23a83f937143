"""The tests in `interpreted/` are for processes in which TRITON_INTERPRET=1: test_interpreter.py starts these."""

from __future__ import annotations

from triton_dist import env

collect_ignore = [] if env.TRITON_INTERPRET.get() else ["interpreted"]
