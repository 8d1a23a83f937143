"""Workers of pytest-xdist that are forked are like those that import by themselves."""

from __future__ import annotations

import json
import sys

import pytest

from .conftest import Suite

SURROUNDINGS = """
import faulthandler, json, os, random, signal, sys, threading
import pytest

HAD_TORCH = "torch" in sys.modules
RANDOM = random.random()
import torch
SEED = torch.initial_seed()

def worker(rank, world_size):
    pass

def test_ranks(dist_test):
    dist_test(worker)

@pytest.mark.parametrize("number", range(4))
def test_surroundings(number, tmp_path, request):
    # The last two: readline sets them behind Python's back, and only who is executed anew inherits them.
    changing = ("CONTROLLER", "PYTEST_XDIST_TESTRUNUID", "PYTEST_CURRENT_TEST", "LINES", "COLUMNS")
    told = {
        "environ": {name: value for name, value in os.environ.items() if name not in changing},
        "directory": os.getcwd(),
        "path": sys.path,
        "argv": sys.argv,
        "flags": str(sys.flags),
        "plugins": sorted(name for name, _ in request.config.pluginmanager.list_name_plugin() if not name.isdigit()),
        "faulthandler": faulthandler.is_enabled(),
        "signals": {int(number): str(signal.getsignal(number)).split(" at ")[0] for number in signal.valid_signals()},
        "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "threads": len(threading.enumerate()),
        "threads of torch": torch.get_num_threads(),
        "NPUs": torch.npu.device_count(),
        "in the group of its controller": os.getpgrp() == os.getpgid(int(os.environ["CONTROLLER"])),
        "standard input": os.readlink("/proc/self/fd/0"),
    }
    with open(f"{os.environ['PYTEST_XDIST_WORKER']}.json", "w") as file:
        json.dump({"had torch": HAD_TORCH, "random": [RANDOM, SEED], "told": told}, file)
"""
CONFTEST = """
import os
os.environ.setdefault("CONTROLLER", str(os.getpid()))
"""


def test_forked_workers_have_the_surroundings_of_others(suite: Suite) -> None:
    suite.write("conftest.py", CONFTEST)
    suite.write("test_it.py", SURROUNDINGS)
    usual = ("-p", "cacheprovider", "-n", "2", "--npus=sim:3")
    seen = []
    # The first run knows nothing of the suite, so its workers import by themselves. So do those of the third.
    for more in ((), (), ("--no-warm-ranks",)):
        result = suite.run(*usual, *more)
        result.assert_outcomes(passed=5)
        # But for the option above, which names what pytest has loaded already.
        result.stdout.no_fnmatch_line("*cannot be rewritten; [!_]*")
        seen.append([json.loads((suite.path / f"gw{number}.json").read_text()) for number in range(2)])
    assert [[worker["had torch"] for worker in run] for run in seen] == [[False] * 2, [True] * 2, [False] * 2]
    for imported, forked in zip(seen[0], seen[1], strict=True):
        assert forked["told"] == imported["told"]
    first, second = (worker["random"] for worker in seen[1])
    assert all(one != other for one, other in zip(first, second, strict=True))


OTHERS = [
    "-n1 --cov=. --cov-report=",
    f"--dist=load --tx=1*popen//python={sys.executable}",
    "-n1 --sim-strict",
    "-n1 test_other.py",
]


@pytest.mark.parametrize("more", OTHERS, ids=["coverage", "another interpreter", "strict", "a file without ranks"])
def test_where_workers_import_by_themselves(suite: Suite, more: str) -> None:
    for name in ("test_ranks.py", "test_other.py"):
        suite.write(name, "import sys\ndef test_it():\n    assert 'torch' not in sys.modules\n")
    options = suite.remember_ranks("test_ranks.py::test_it")
    suite.run(*options, *more.split()).assert_outcomes(passed=1 if "test_other.py" in more else 2)
