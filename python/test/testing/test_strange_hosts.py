"""Hosts on which something is missing: each says so in a line, and nothing hangs."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from triton_dist.testing.ranks.client import ZygoteClient, ZygoteError

from .conftest import Suite

TESTS = """
import pytest

def never(rank, world_size):
    pass

@pytest.mark.dist(world_size="4")
def test_text(dist_test):
    dist_test(never)

@pytest.mark.dist(world_size=0)
def test_none(dist_test):
    dist_test(never)

@pytest.mark.dist(world_size=1000)
def test_too_many(dist_test):
    dist_test(never)

@pytest.mark.dist(timeout="soon")
def test_time(dist_test):
    dist_test(never)

@pytest.mark.dist
def test_it(dist_test):
    dist_test(never)
"""


def test_without_a_loopback(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """And with marker arguments that are none, in a temporary directory with a space, without a home."""
    if shutil.which("unshare") is None:
        pytest.skip("no network namespace for this test: there is no unshare (Debian: util-linux)")
    try_it = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True, check=False)
    if try_it.returncode:
        pytest.skip(f"no network namespace for this test: {try_it.stderr.strip()}")
    suite.write("test_it.py", TESTS)
    suite.tmp = suite.tmp.with_name("a temporary directory")
    suite.tmp.mkdir()
    monkeypatch.delenv("HOME", raising=False)
    result = suite.run("--color=no", through=("unshare", "--net"))
    result.assert_outcomes(failed=5)
    result.stdout.fnmatch_lines(
        [
            "dist_test: world_size is '4': it takes an integer of 1 or more",
            "dist_test: world_size is 0: it takes an integer of 1 or more",
            "dist_test: world_size is 1000: one host can run up to 248 ranks of a test",
            "dist_test: timeout of marker dist is 'soon': it takes a number of seconds greater than 0",
            "dist_test: ranks cannot reach each other at 127.0.0.1 (Network is unreachable): the loopback is down; *",
        ]
    )


def test_without_a_place_for_what_is_built(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.write(
        "test_it.py", "def never(rank, world_size): pass\ndef test_it(dist_test): dist_test(never, world_size=1)\n"
    )
    monkeypatch.setenv("TRITON_DIST_CACHE_DIR", "/proc/no/such/place")
    result = suite.run("--color=no")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "rank 0 of 1: RuntimeError: torch has no device npu: cannot build the torch device into "
            "/proc/no/such/place/*: make it writable, or name another directory in TRITON_DIST_CACHE_DIR"
        ]
    )


def test_a_zygote_that_cannot_be_started_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/not/there/python")
    with pytest.raises(ZygoteError, match=r"the process that starts ranks cannot be started: .*'/not/there/python'$"):
        ZygoteClient.start(kept=1)
