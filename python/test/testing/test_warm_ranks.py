"""Rank processes that serve several tests: which are used again, and that no test sees what another left."""

from __future__ import annotations

from .conftest import Suite

# A line for each rank of each test: test, rank, pid.
CONFTEST = """
import os
import pytest

@pytest.fixture
def pids(request):
    return os.path.dirname(__file__) + "/pids", request.node.name
"""

REUSE = """
import os, time
import pytest

def note(rank, world_size, pids):
    file, test = pids
    with open(file, "a") as out:
        out.write(f"{test} {rank} {os.getpid()} {os.getppid()}\\n")

@pytest.mark.dist
@pytest.mark.parametrize("world_size", [2, 3, 1, 2])
def test_usual(dist_test, pids, world_size):
    dist_test(note, world_size=world_size, backend="gloo", args=(pids,))
    # Ranks are ready for others a moment after their test.
    time.sleep(1)

@pytest.mark.dist(fresh=True)
def test_fresh(dist_test, pids):
    dist_test(note, backend="gloo", args=(pids,))

def test_another_environment(dist_test, pids, monkeypatch):
    monkeypatch.setenv("SOMETHING_THAT_A_LIBRARY_MAY_READ_ONCE", "1")
    dist_test(note, backend="gloo", args=(pids,))
"""


def pids(suite: Suite) -> dict[str, list[str]]:
    """The pids of each test's ranks, in order of ranks."""
    found: dict[str, list[str]] = {}
    for line in sorted((suite.path / "pids").read_text().splitlines()):
        test, _, pid, _ = line.split()
        found.setdefault(test, []).append(pid)
    return found


def test_ranks_serve_the_tests_that_they_fit(suite: Suite) -> None:
    suite.write("conftest.py", CONFTEST)
    suite.write("test_reuse.py", REUSE)
    result = suite.run()
    result.assert_outcomes(passed=6)
    of = pids(suite)
    usual = [pid for test, its_pids in of.items() if "usual" in test for pid in its_pids]
    assert len(usual) == 8
    assert len(set(usual)) < 8
    assert not set(usual) & set(of["test_fresh"] + of["test_another_environment"])
    result.stdout.fnmatch_lines(["*warm ranks reused*", f"*{8 - len(set(usual))} of 12*"])


def test_no_warm_ranks(suite: Suite) -> None:
    suite.write("conftest.py", CONFTEST)
    suite.write("test_reuse.py", REUSE)
    result = suite.run("--no-warm-ranks")
    result.assert_outcomes(passed=6)
    all_pids = [pid for pids_of_test in pids(suite).values() for pid in pids_of_test]
    assert len(set(all_pids)) == len(all_pids) == 12


def test_workers_share_ranks(suite: Suite) -> None:
    suite.write("conftest.py", CONFTEST)
    suite.write("test_reuse.py", REUSE)
    suite.run("-n", "2").assert_outcomes(passed=6)
    lines = [line.split() for line in (suite.path / "pids").read_text().splitlines()]
    assert len({zygote for *_, zygote in lines}) == 1


# Each leaves something behind; the next test is not to find it. What cannot be put back costs the rank its place.
ISOLATION = """
import atexit, decimal, gc, locale, logging, os, random, signal, subprocess, sys, tempfile, threading, time, warnings
import numpy
import pytest
import torch
import torch.distributed as dist

counter = 0
table = {{"numbers": [1, 2]}}

class Thing:
    number = 1

thing = Thing()

def imported(file):
    with open(file, "a") as out:
        out.write("imported\\n")

class Importing:
    def __init__(self):
        imported(__file__ + ".log")

importing = Importing()

def leave_nothing(): pass
def leave_directory(): os.chdir("/proc")
def leave_umask(): os.umask(0o077)
def leave_variable(): os.environ["LEFT_BEHIND"] = "1"
def leave_handler(): signal.signal(signal.SIGUSR1, lambda *_: None)
def leave_alarm(): signal.alarm(1)
def leave_path(): sys.path.insert(0, "/left-behind")
def leave_finder(): sys.meta_path.insert(0, leave_finder)
def leave_argv(): sys.argv[:] = ["left behind"]
def leave_stdout(): sys.stdout = open(os.devnull, "w")
def leave_warnings(): warnings.simplefilter("error")
def leave_logging(): logging.getLogger().setLevel(logging.DEBUG); logging.getLogger().addHandler(logging.NullHandler())
def leave_decimals(): decimal.getcontext().prec = 3
def leave_dtype(): torch.set_default_dtype(torch.float64)
def leave_threads_of_torch(): torch.set_num_threads(3)
def leave_no_grad(): torch.set_grad_enabled(False)
def leave_deterministic(): torch._C._set_deterministic_algorithms(True, warn_only=False)
def leave_precision(): torch.set_float32_matmul_precision("medium")
def leave_printing(): torch.set_printoptions(precision=9)
def leave_errors_of_numpy(): numpy.seterr(all="raise")
def leave_collector_off(): gc.disable()
def leave_group(): dist.new_group([dist.get_rank()])
def leave_no_group(): dist.destroy_process_group()
def leave_global():
    global counter
    counter += 1
def leave_table(): table["numbers"].append(3)
def leave_attribute(): thing.number = 2
def leave_exit_function(): atexit.register(imported, "exit-functions.log")

def lose_thread(): threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
def lose_child(): subprocess.Popen(["sleep", "1000"])
def lose_function(): torch.ones = torch.zeros
def lose_builtin(): os.getcwd = lambda: "left behind"
def lose_device(): torch.set_default_device("meta")
def lose_job():
    import shmem as ash
    attributes = ash.InitAttr()
    attributes.my_rank, attributes.n_ranks = dist.get_rank(), dist.get_world_size()
    attributes.local_mem_size, attributes.ip_port = 1 << 20, "tcp://127.0.0.1:8666"
    ash.aclshmem_init(attributes)
def lose_tensor():
    torch.left_behind = torch.ones(4, device="npu")
def lose_memory():
    torch.left_behind = numpy.ones(40_000_000)

def check(rank, world_size, was):
    assert dist.get_rank() == rank and dist.get_world_size() == world_size
    assert os.getcwd() == was["directory"] and os.path.isdir(os.getcwd())
    mask = os.umask(0o022); assert mask == was["umask"], oct(mask)
    assert "LEFT_BEHIND" not in os.environ
    assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL and signal.alarm(0) == 0
    assert "/left-behind" not in sys.path and sys.argv == was["argv"]
    assert all(hasattr(finder, "find_spec") for finder in sys.meta_path)
    print("seen", rank)
    assert not any(action == "error" for action, *_ in warnings.filters)
    assert logging.getLogger().level == logging.WARNING and logging.getLogger().handlers == []
    assert decimal.getcontext().prec == 28
    assert torch.get_default_dtype() == torch.float32 and torch.ones(1).item() == 1
    assert torch.get_num_threads() == 1
    assert torch.is_grad_enabled() and not torch.are_deterministic_algorithms_enabled()
    assert torch.get_float32_matmul_precision() == "highest"
    assert torch._tensor_str.PRINT_OPTS.precision == 4
    assert numpy.geterr()["divide"] == "warn" and gc.isenabled()
    assert torch.get_default_device() == torch.device("cpu")
    assert counter == 0 and table == {{"numbers": [1, 2]}} and thing.number == 1
    assert {{thread.name for thread in threading.enumerate()}} == {{"MainThread", "triton-dist-watcher"}}
    import shmem as ash
    assert ash.aclshmemx_init_status() == ash.InitStatus.NOT_INITIALIZED
    assert not hasattr(torch, "left_behind")
    total = torch.ones(2)
    dist.all_reduce(total)
    assert total[0] == world_size

def dirty(rank, world_size, pids, name):
    globals()[name]()
    note(rank, pids)

def clean(rank, world_size, pids, was):
    check(rank, world_size, was)
    note(rank, pids)

def note(rank, pids):
    file, test = pids
    with open(file, "a") as out:
        out.write(f"{{test}} {{rank}} {{os.getpid()}} {{os.getppid()}}\\n")

@pytest.mark.dist
@pytest.mark.parametrize("what", ["dirty", "clean"])
@pytest.mark.parametrize("name", {names})
def test_it(dist_test, pids, name, what):
    if what == "dirty":
        dist_test(dirty, backend="gloo", args=(pids, name))
        time.sleep(0.5)
    else:
        mask = os.umask(0); os.umask(mask)
        was = {{"directory": os.getcwd(), "umask": mask, "argv": sys.argv}}
        dist_test(clean, backend="gloo", args=(pids, was))
"""

PUT_BACK = [line.split("(")[0][4:] for line in ISOLATION.splitlines() if line.startswith("def leave_")]
REPLACED = [line.split("(")[0][4:] for line in ISOLATION.splitlines() if line.startswith("def lose_")]


def test_what_a_test_leaves_is_put_back_or_the_rank_is_replaced(suite: Suite) -> None:
    suite.write("conftest.py", CONFTEST)
    suite.write("test_isolation.py", ISOLATION.format(names=PUT_BACK + REPLACED))
    result = suite.run("-q", "-rf")
    result.assert_outcomes(passed=2 * len(PUT_BACK + REPLACED))
    of = pids(suite)
    tests = [f"test_it[{name}-{what}]" for name in PUT_BACK + REPLACED for what in ("dirty", "clean")]
    for name in PUT_BACK + REPLACED:
        test = f"test_it[{name}-dirty]"
        later = {pid for other in tests[tests.index(test) + 1 :] for pid in of[other]}
        assert (set(of[test]) <= later) == (name in PUT_BACK), name
        if name in REPLACED:
            assert not set(of[test]) & later
    assert (suite.path / "exit-functions.log").read_text() == "imported\n" * 2
    # By pytest, and by two ranks: at first, after each of three changes, and where a rank was new.
    imports = (suite.path / "test_isolation.py.log").read_text().count("imported")
    assert 1 + 2 * (1 + 3 + len(REPLACED)) <= imports <= len(tests)
