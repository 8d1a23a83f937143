"""Options, and what the plugin costs a suite that does not need it."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Suite

NPUS = """
import os
import pytest

def worker(rank, world_size):
    assert os.environ["TRITON_DIST_SIM_NPUS"] == str(world_size)

def test_npus(dist_test):
    assert os.environ["TRITON_DIST_SIM_NPUS"] == "3"
    dist_test(worker, world_size=3, backend="gloo")
    with pytest.raises(pytest.fail.Exception, match="4 ranks need 4 NPUs, and the pool has 3 simulated"):
        dist_test(worker, world_size=4, backend="gloo")
"""


def test_npus_option_sets_the_pool(suite: Suite) -> None:
    suite.write("test_npus.py", NPUS)
    result = suite.run("--npus=sim:3")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["NPUs: 3 simulated (Ascend910B3)"])


STRICT = """
import os

def worker(rank, world_size):
    from triton_dist import env
    from triton_dist.runtime import soc
    print("cores", soc.simulated())
    print("strict", env.TRITON_DIST_SIM_STRICT.get(), "seed", env.TRITON_DIST_SIM_SEED.get())
    assert rank == 0

def test_strict(dist_test):
    dist_test(worker, world_size=2, backend="gloo")
"""


def test_strict_mode_is_told_with_what_replays_it(suite: Suite) -> None:
    suite.write("test_strict.py", STRICT)
    result = suite.run("--npus=sim:2", "--sim-strict", "--sim-seed=81723", "--sim-cores=3,5")
    result.assert_outcomes(failed=1)
    replay = 'replay: pytest "test_strict.py::test_strict" --npus=sim:2 --sim-strict --sim-seed=81723 --sim-cores=3,5'
    result.stdout.fnmatch_lines(
        [
            "strict mode: --sim-strict --sim-seed=81723",
            "cores Cores(aic=3, aiv=5)",
            "strict True seed 81723",
            replay,
        ]
    )


def test_strict_mode_without_a_seed_takes_the_same_one_everywhere(suite: Suite) -> None:
    suite.write("test_strict.py", STRICT)
    result = suite.run("--sim-strict", "-n1")
    result.assert_outcomes(failed=1)
    lines = [line for line in result.outlines if line.startswith(("strict mode: --sim", "strict True", "replay: "))]
    assert len({line.split()[-1].rpartition("=")[2] for line in lines}) == 1, lines
    assert len(lines) >= 2


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ("--npus=none", "--npus=none is not allowed: it takes auto, COUNT, LIST such as 0,2,5-7, or sim:COUNT*"),
        ("--npus=sim:0", "--npus=sim:0 is not allowed*"),
        ("--npus=5000", "*5000*not allowed*"),
        ("--sim-cores=20", "--sim-cores=20 is not allowed: it takes AIC,AIV, two integers of 1 or more"),
        ("--sim-cores=0,8", "--sim-cores=0,8 is not allowed*"),
        ("--sim-seed=-1", "--sim-seed=-1 is not allowed: it takes an integer of 0 or more"),
        ("--dist-timeout=soon", "--dist-timeout is 'soon': it takes a number of seconds greater than 0"),
        ("-odist_timeout=-1", "dist_timeout of the ini-file is '-1': it takes a number of seconds greater than 0"),
    ],
)
def test_wrong_options_are_one_line(suite: Suite, option: str, complaint: str) -> None:
    result = suite.run(option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines([f"ERROR: {complaint}"])


def test_help_shows_options_and_marker(suite: Suite) -> None:
    result = suite.run("--help")
    result.stdout.fnmatch_lines(
        [
            "*--npus=NPUS*",
            "*--dist-timeout=SECONDS*",
            "*--sim-strict*",
            "*--sim-seed=SEED*",
            "*--sim-cores=AIC,AIV*",
            "*--no-warm-ranks*",
            "*--pdb-rank=RANK*",
            "*--dist-artifacts=DIR*",
            "*dist_timeout*",
        ]
    )
    suite.run("--markers").stdout.fnmatch_lines(["@pytest.mark.dist(*timeout*"])


PLAIN = """
import sys

def test_plain():
    costly = ("triton_dist.testing.ranks", "triton_dist.devices.survey")
    modules = [name for name in sys.modules if name.startswith(costly)]
    assert modules == [] and "torch" not in sys.modules and "triton" not in sys.modules
"""

COLLECTED = """
import pytest

def worker(rank, world_size):
    pass

@pytest.mark.dist
def test_collected(dist_test):
    dist_test(worker, backend="gloo")
"""


def test_other_suites_do_not_pay(suite: Suite) -> None:
    suite.write("test_plain.py", PLAIN)
    result = suite.run("--strict-markers")
    result.assert_outcomes(passed=1)
    assert "NPU-seconds" not in result.stdout.str()
    assert not suite.leases.exists()


def test_collecting_starts_nothing(suite: Suite) -> None:
    suite.write("test_collected.py", COLLECTED)
    result = suite.run("--collect-only", "--strict-markers", "-v")
    result.stdout.fnmatch_lines(["*test_collected*"])
    assert not suite.leases.exists()


def test_an_unusable_lease_directory_is_one_clear_line(suite: Suite) -> None:
    suite.leases.write_text("not a directory")
    suite.write("test_collected.py", COLLECTED)
    process = suite.start("--color=no")
    output, _ = process.communicate(timeout=240)
    suite.leases.unlink()
    suite.leases.mkdir()
    # On CI pytest repeats the whole message in its short summary.
    told = [line for line in output.splitlines() if not line.startswith("FAILED")]
    lines = [line for line in told if "cannot be used" in line]
    assert len(lines) == 1
    assert lines[0].startswith(f"dist_test: the lease directory {suite.leases} cannot be used (Not a directory")
    assert lines[0].endswith("or set TRITON_DIST_LEASE_DIR to a directory that is")
    suite.check_nothing_left(0.5)


def test_help_tells_each_default(pytestconfig: pytest.Config) -> None:
    parser: Any = pytestconfig._parser
    options = {name: option for option in parser.getgroup("triton-dist").options for name in option.names()}
    assert len(options) >= 10
    assert [name for name, option in options.items() if "Default: " not in option.attrs()["help"]] == []
