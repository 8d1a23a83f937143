"""Leases of real NPUs: which ones a run uses, what its ranks see, and what happens after a hang."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from devices.host import NO_CANN, Host
from devices.tables import Chip, Process, info

from triton_dist.devices.survey import survey
from triton_dist.testing import choice
from triton_dist.testing.choice import Choice, Wish
from triton_dist.testing.hardware_report import hardware_texts
from triton_dist.testing.leases.directory import LeaseDirectory
from triton_dist.testing.leases.errors import LeaseError
from triton_dist.testing.leases.pool import NpuPool
from triton_dist.testing.leases.status import status
from triton_dist.testing.ranks.native_stacks import native_stacks

from .conftest import Suite
from .test_failures import section


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host that this process and its children take for their own, with eight NPUs and leases of its own."""
    made = Host(tmp_path / "host")
    for name in (*NO_CANN, "TRITON_DIST_SIM_NPUS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in made.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TRITON_DIST_LEASE_DIR", str(tmp_path / "leases"))
    made.a2()
    return made


def chosen(npus: str, *, allow_busy: bool = False) -> Choice:
    return choice.choose(Wish.of(npus), allow_busy=allow_busy)


def pool(npus: str = "auto") -> NpuPool:
    return NpuPool(chosen(npus).inventory, LeaseDirectory.of_this_host())


BUSY = "NPU 5 is skipped: busy with python3 218344, 38 GB (--allow-busy-npus takes it all the same)"
UNHEALTHY = "NPU 6 is skipped: its health is Warning"


@pytest.mark.parametrize(
    ("npus", "numbers", "remarks"),
    [
        ("auto", (0, 1, 2, 3, 4, 7), (BUSY, UNHEALTHY)),
        ("2", (0, 1), (BUSY, UNHEALTHY)),
        ("6", (0, 1, 2, 3, 4, 7), (BUSY, UNHEALTHY)),
        ("0,2,5-7", (0, 2, 7), (BUSY, UNHEALTHY)),
        ("3,", (3,), ()),
        ("3-3", (3,), ()),
    ],
)
def test_a_run_uses_the_fit_ones_of_those_it_asks_for(
    host: Host, npus: str, numbers: tuple[int, ...], remarks: tuple[str, ...]
) -> None:
    found = chosen(npus)
    assert found.inventory.npus == numbers
    assert found.remarks == remarks
    assert found.environ == {"ASCEND_RT_VISIBLE_DEVICES": ",".join(map(str, numbers))}


def test_so_many_are_those_that_are_linked(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_VISIBLE_DEVICES", "1-4")
    assert chosen("2").inventory.npus == (2, 3)


def test_busy_ones_are_used_when_that_is_allowed(host: Host) -> None:
    assert chosen("auto", allow_busy=True).inventory.npus == (0, 1, 2, 3, 4, 5, 7)


@pytest.mark.parametrize(
    ("npus", "complaint"),
    [
        ("7", r"--npus=7: 6 NPUs can be used \(NPU 5 is skipped: .*; NPU 6 is skipped: its health is Warning\)"),
        ("0,8-9", r"--npus=0,8-9: NPU 8-9 is not here; this process sees 0-7"),
        ("5-2", "--npus=5-2 is not allowed: '5-2' is neither a number nor a range"),
        ("0,,1", "--npus=0,,1 is not allowed"),
        ("sim:", "--npus=sim: is not allowed: it takes auto, COUNT, LIST such as 0,2,5-7, or sim:COUNT"),
    ],
)
def test_what_the_host_does_not_have_is_one_line(host: Host, npus: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as caught:
        chosen(npus)
    assert "\n" not in str(caught.value)


def test_simulated_ones_can_be_had_all_the_same(host: Host) -> None:
    found = chosen("sim:3")
    assert found.inventory.description == "3 simulated (Ascend910B3)"
    assert found.environ == {"TRITON_DIST_SIM_NPUS": 3, "TRITON_DIST_BACKEND": "sim"}


def test_a_list_of_simulated_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DIST_BACKEND", "sim")
    found = chosen("0,2,5-7")
    assert found.inventory.npus == (0, 2, 5, 6, 7)
    assert found.environ == {"TRITON_DIST_SIM_NPUS": 5}


def test_without_npus_none_are_simulated_where_that_is_forbidden(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.nodes([])
    assert chosen("auto").inventory.npus == tuple(range(8)), "simulated ones, where nothing is forbidden"
    monkeypatch.setenv("TRITON_DIST_BACKEND", "ascend")
    found = chosen("auto")
    assert found.inventory.npus == ()
    assert found.remarks == ("no NPU found: TRITON_DIST_BACKEND=ascend forbids simulated ones",)
    with pytest.raises(LeaseError, match="2 ranks need 2 NPUs, and the pool has none: `python -m triton_dist npus`"):
        NpuPool(found.inventory, LeaseDirectory.of_this_host()).acquire(2)


def test_what_another_test_has_is_not_strangers_work(host: Host) -> None:
    lease = pool("0-1").acquire(2)
    host.npu_smi(info([Chip(npu, used=20000 if npu < 3 else 3000) for npu in range(8)]))
    found = chosen("0-3")
    assert found.inventory.npus == (0, 1, 3)
    lease.release()


def test_ranks_count_what_they_have_from_0(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_VISIBLE_DEVICES", "1,3-7")
    everything = pool()
    assert everything.inventory.npus == (1, 3, 4, 7)
    lease = everything.acquire(3)
    assert lease.npus == (1, 3, 4)
    assert everything.inventory.environ(lease.npus) == {"ASCEND_RT_VISIBLE_DEVICES": "0,1,2"}
    lease.release()


def test_linked_ones_go_together(host: Host) -> None:
    everything = pool()
    single = everything.acquire(1)
    # 7 has lost its neighbour on the same NUMA node already.
    assert single.npus == (4,) or single.npus == (7,)
    pair = everything.acquire(2)
    assert pair.npus in {(0, 1), (2, 3)}
    single.release()
    pair.release()


def test_containers_share_npus_by_their_physical_numbers(host: Host) -> None:
    host.npu_smi(info([Chip(npu) for npu in range(8)]))
    host.nodes([4, 5])
    one = pool()
    host.nodes([5, 6, 7])
    other = pool()
    lease = one.acquire(2)
    assert (lease.npus, one.inventory.environ(lease.npus)["ASCEND_RT_VISIBLE_DEVICES"]) == ((4, 5), "0,1")
    theirs = other.acquire(2)
    assert (theirs.npus, other.inventory.environ(theirs.npus)["ASCEND_RT_VISIBLE_DEVICES"]) == ((6, 7), "1,2")
    lease.release()
    theirs.release()


# ------------------------------------------------------------------------------------ quarantine


def table(*, health: str = "OK", used: int = 3000, processes: tuple[Process, ...] = ()) -> str:
    """A host with one NPU in the given state."""
    text: str = info([Chip(0, health=health, used=used)], processes)
    return text


@pytest.fixture
def one_npu(host: Host, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setattr("triton_dist.testing.leases.quarantine._LOOK", 0.02)
    host.nodes([0])
    host.npu_smi(table())
    return host


class Patience:
    """Lets a request look some times, and notes what the NPU's state was meanwhile."""

    def __init__(self, looks: int) -> None:
        self.states: list[tuple[str, str]] = []
        self._looks = looks

    def __call__(self) -> None:
        (row,) = status(survey(), LeaseDirectory.of_this_host()).rows
        self.states.append((row.state, row.detail))
        if len(self.states) == self._looks:
            raise TimeoutError


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (table(health="Alarm"), "its health is Alarm"),
        (table(used=30000), "it is still busy: a process that npu-smi does not show, 30 GB"),
        (table(processes=((0, 0, 4711, "python3", 100),)), "it is still busy: python3 4711, 100 MB"),
        ("garbage", "npu-smi gives no answer"),
    ],
)
def test_after_a_hang_an_npu_is_kept_out_until_it_is_fit(one_npu: Host, state: str, why: str) -> None:
    everything = pool()
    lease = everything.acquire(1)
    lease.suspect("ranks of its last test had not ended after 3 s")
    lease.release()
    (row,) = status(survey(), LeaseDirectory.of_this_host()).rows
    assert (row.state, row.detail) == ("quarantined", "ranks of its last test had not ended after 3 s")
    one_npu.npu_smi(state)
    patience = Patience(5)
    with pytest.raises(TimeoutError):
        everything.acquire(1, patience)
    assert any(detail.startswith(why) for _, detail in patience.states), patience.states
    one_npu.npu_smi(table())
    everything.acquire(1, Patience(1000)).release()


def test_in_order_an_npu_goes_to_the_next_without_a_question(one_npu: Host) -> None:
    everything = pool()
    everything.acquire(1).release()
    one_npu.npu_smi_script("exit 1")
    everything.acquire(1).release()


HOLDER = """
import os
from triton_dist.testing import choice
from triton_dist.testing.leases.directory import LeaseDirectory
from triton_dist.testing.leases.pool import NpuPool
inventory = choice.choose(choice.Wish.of("auto"), allow_busy=False).inventory
lease = NpuPool(inventory, LeaseDirectory.of_this_host(), "gw3").acquire(1, test="test_killed")
print(os.getpid(), flush=True)
input()
"""


def test_a_holder_that_is_killed_leaves_an_npu_to_be_looked_at(one_npu: Host) -> None:
    everything = pool()
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    pid = holder.stdout.readline().strip()
    one_npu.npu_smi(table(used=30000))
    holder.kill()
    holder.communicate()
    (row,) = status(survey(), LeaseDirectory.of_this_host()).rows
    assert (row.state, row.detail) == ("quarantined", f"its last holder, test_killed of pytest {pid}, was killed")
    with pytest.raises(TimeoutError):
        everything.acquire(1, Patience(5))
    one_npu.npu_smi(table())
    everything.acquire(1, Patience(1000)).release()


def test_who_waits_for_an_npu_that_does_not_recover_is_told(one_npu: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triton_dist.testing.leases.pool._PATIENCE_WITH_QUARANTINE", 0.2)
    everything = pool()
    lease = everything.acquire(1)
    lease.suspect("a hang")
    lease.release()
    one_npu.npu_smi(table(health="Critical"))
    with pytest.raises(LeaseError, match=r"0 of the pool are fit: .*\(NPU 0: its health is Critical\); reset them"):
        everything.acquire(1, Patience(1000))


def test_without_npu_smi_nobody_can_tell(one_npu: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = pool()
    lease = everything.acquire(1)
    lease.suspect("a hang")
    lease.release()
    monkeypatch.setattr("triton_dist.devices.npu_smi._USUAL_PLACES", ())
    one_npu.npu_smi_file.unlink()
    everything.acquire(1, Patience(1000)).release()


# ------------------------------------------------------------------------------------ whole runs

SUITE = """
import os
import pytest

USABLE = {"0", "1", "2", "3", "4", "7"}

def worker(rank, world_size):
    mine = os.environ["ASCEND_RT_VISIBLE_DEVICES"].split(",")
    assert len(set(mine)) == world_size and set(mine) <= USABLE

@pytest.mark.parametrize("world_size", [1, 2, 6])
def test_ranks(dist_test, world_size):
    assert set(os.environ["ASCEND_RT_VISIBLE_DEVICES"].split(",")) == USABLE
    dist_test(worker, world_size=world_size, backend="gloo")

def test_too_many(dist_test):
    with pytest.raises(pytest.fail.Exception, match="7 ranks need 7 NPUs, and the pool has 6 .Ascend910B3.: 0-4,7"):
        dist_test(worker, world_size=7, backend="gloo")
"""


def test_workers_of_xdist_share_what_their_controller_found(host: Host, suite: Suite, tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    text = host.npu_smi_file.read_text()
    host.npu_smi_script(f'echo "$*" >> {asked}\n' + text)
    suite.write("test_npus.py", SUITE)
    result = suite.run("-n", "2")
    result.assert_outcomes(passed=4)
    assert sorted(asked.read_text().splitlines()) == ["info", "info -m", "info -t topo"]
    alone = suite.run("--collect-only")
    alone.stdout.fnmatch_lines(["NPUs: 6 (Ascend910B3): 0-4,7", f"  {BUSY}", f"  {UNHEALTHY}"])


WARM = """
import os
import pytest
from triton_dist.testing.leases.directory import LeaseDirectory
from triton_dist.testing.leases.line import in_line
from triton_dist.testing.leases.pool import NpuPool
from triton_dist.testing import choice

def note(rank, world_size, name):
    with open(f"{name}.{rank}", "w") as file:
        file.write(f"{os.getpid()} {os.environ['ASCEND_RT_VISIBLE_DEVICES']} {os.environ['TRITON_DIST_MASTER_PORT']}")

def run(dist_test, name, world_size=2):
    dist_test(note, world_size=world_size, backend="gloo", args=(os.path.join(os.path.dirname(__file__), name),))

def test_1_first(dist_test):
    run(dist_test, "first")

def test_2_second(dist_test):
    run(dist_test, "second")

def test_3_larger(dist_test):
    # All that there are: idle ranks have two of them.
    run(dist_test, "larger", 6)

def test_4_others():
    # Of another run, say: it waits for all, which idle ranks have.
    pool = NpuPool(choice.choose(choice.Wish.of("auto"), allow_busy=False).inventory, LeaseDirectory.of_this_host())
    assert len(pool.free()) == 0
    pool.acquire(6).release()

def test_5_anew(dist_test):
    run(dist_test, "anew", 6)

@pytest.mark.dist(fresh=True)
def test_6_fresh(dist_test):
    run(dist_test, "fresh", 6)

def fails(rank, world_size):
    assert rank

def test_7_fails(dist_test):
    run(dist_test, "before", 2)
    dist_test(fails, backend="gloo")

def test_8_after(dist_test):
    run(dist_test, "after", 2)
"""


def test_idle_ranks_keep_their_npus_until_somebody_waits_for_them(host: Host, suite: Suite) -> None:
    suite.write("test_warm.py", WARM)
    result = suite.run()
    result.assert_outcomes(passed=7, failed=1)

    def ranks(name: str) -> list[list[str]]:
        files = sorted(suite.path.glob(f"{name}.*"))
        return [file.read_text().split() for file in files]

    def pids(name: str) -> set[str]:
        return {pid for pid, _, _ in ranks(name)}

    first, second = ranks("first"), ranks("second")
    # The same processes on the same NPUs, as the same ranks; a port of its own for each test.
    assert [rank[:2] for rank in first] == [rank[:2] for rank in second]
    assert len({rank[2] for rank in (*first, *second)}) == 2
    assert len(pids("larger")) == 6
    assert not pids("larger") & pids("second")
    assert not pids("anew") & pids("larger")
    assert not pids("fresh") & pids("anew")
    assert len(pids("before")) == 2
    assert not pids("after") & pids("before")


HANG = """
import os, time

def stay(rank, world_size, logs):
    for kind in ("plog/plog", "device-0/device"):
        file = f"{logs}/debug/{kind}-{os.getpid()}_20261201.log"
        os.makedirs(os.path.dirname(file))
        with open(file, "w") as log:
            log.write("first line\\n" * 100 + "[ERROR] HCCL: notify wait timeout\\n")
    time.sleep(1000)

def come(rank, world_size):
    pass

def test_hang(dist_test):
    dist_test(stay, world_size=1, backend="gloo", args=(os.environ["ASCEND_PROCESS_LOG_PATH"],))

def test_next(dist_test):
    dist_test(come, world_size=1, backend="gloo")
"""
EU_STACK = """#!/bin/sh
echo "PID ${1#--pid=} - process"
echo "TID ${1#--pid=}:"
echo "#0  0x00007f aclrtSynchronizeStream"
"""


def test_what_a_time_out_on_real_npus_shows(
    host: Host, suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = tmp_path / "asked"
    host.nodes([0])
    host.npu_smi(table())
    host.npu_smi_script(f'echo "$*" >> {asked}\n' + host.npu_smi_file.read_text())
    host.program("eu-stack", EU_STACK)
    monkeypatch.setenv("ASCEND_PROCESS_LOG_PATH", str(tmp_path / "logs"))
    suite.write("test_hang.py", HANG)
    result = suite.run("--dist-timeout=3", "--dist-artifacts=kept", "--color=no")
    result.assert_outcomes(passed=1, failed=1)
    # At the start of the run, while the ranks hung, and before the next test had the NPU.
    assert asked.read_text().splitlines().count("info") == 3
    told = section(result.stdout.str(), "test_hang")
    assert told.startswith("time-out: rank 0 of 1 was not done 3 s after the test got its NPUs\n")
    assert "time.sleep(1000)" in told
    titles = re.findall(r"^-+ (.*?) -+$", told, re.MULTILINE)
    (pid,) = re.findall(r"plog-(\d+)_20261201.log", " ".join(titles))
    names = ["npu-smi.txt", f"device-{pid}_20261201.log", f"plog-{pid}_20261201.log"]
    assert titles[:4] == ["rank 0 of 1", *names]
    assert table().rstrip() in told
    assert told.count("[... 61 lines left out ...]\n") == told.count("[ERROR] HCCL: notify wait timeout\n") == 2
    (folder,) = (suite.path / "kept").iterdir()
    assert (folder / names[2]).read_text().count("first line") == 100
    assert (folder / "npu-smi.txt").read_text() == table()
    assert (folder / "rank-0.native-stacks.txt").read_text() == f"TID {pid}:\n#0  0x00007f aclrtSynchronizeStream\n"
    assert (folder / "rank-0.stacks.txt").exists()


def test_native_stacks_take_no_longer_than_they_may(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triton_dist.testing.ranks.native_stacks._TIME", 0.5)
    host.program("eu-stack", "#!/bin/sh\ntest $1 = --pid=1 && echo 'TID 1:' && sleep 1000\n")
    # What it has said before is kept; the others have no time left.
    assert native_stacks([1, 2]) == {1: "TID 1:"}
    host.program("eu-stack", "#!/bin/sh\necho may not attach; exit 1\n")
    assert native_stacks([1, 2]) == {}


def test_hosts_without_npu_smi_and_logs_have_nothing_to_say(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_PROCESS_LOG_PATH", "/not/there")
    host.npu_smi_script("sleep 1000")
    monkeypatch.setattr("triton_dist.testing.hardware_report._TIME", 0.2)
    assert "timed out after 0.2 seconds" in hardware_texts([1])["npu-smi.txt"]
    host.npu_smi_file.unlink()
    assert hardware_texts([1]) == {}
    monkeypatch.setenv("TRITON_DIST_BACKEND", "sim")
    host.a2()
    assert hardware_texts([1]) == {}


def test_a_wish_that_cannot_be_had_ends_the_run_before_it_begins(host: Host, suite: Suite) -> None:
    result = suite.run("--npus=0,9")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["ERROR: --npus=0,9: NPU 9 is not here; this process sees 0-7"])


# ------------------------------------------------------------------------------------- endpoints

SHMEM = """
import os

class InitAttr:
    ip_port = ""

def aclshmem_init(attributes):
    print(attributes.ip_port or os.environ["SHMEM_UID_SESSION_ID"])
    return 0

def aclshmem_get_unique_id():
    print(os.environ["SHMEM_UID_SESSION_ID"])
"""
MEETS = """
import os, sys
import shmem as ash

for text in sys.argv[1:]:
    attributes = ash.InitAttr()
    attributes.ip_port = text
    assert ash.aclshmem_init(attributes) == 0
os.environ["SHMEM_UID_SESSION_ID"] = "localhost:8888"
ash.aclshmem_get_unique_id()
os.environ["SHMEM_UID_SESSION_ID"] = "192.168.1.100:8888"
ash.aclshmem_init(ash.InitAttr())
"""


@pytest.mark.parametrize("leased", [True, False])
def test_in_a_lease_aclshmem_meets_at_a_port_of_it_where_code_names_the_loopback(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leased: bool
) -> None:
    """With a module that stands for the real one."""
    (tmp_path / "shmem.py").write_text(SHMEM)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    lease = pool().acquire(1)
    assert lease.environ()["TRITON_DIST_SHMEM_PORT"] == str(lease.shmem_port)
    assert lease.shmem_port != lease.port
    if leased:
        monkeypatch.setenv("TRITON_DIST_SHMEM_PORT", str(lease.shmem_port))
    named = ["tcp://127.0.0.1:8666", "tcp6://[::1]:8666", "tcp://10.0.0.1:8666", "tcp://127.0.0.1:0", "nonsense"]
    done = subprocess.run(
        [sys.executable, "-c", MEETS, *named], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    port = lease.shmem_port if leased else 8666
    met = [f"tcp://127.0.0.1:{port}", f"tcp6://[::1]:{port}", *named[2:]]
    assert done.stdout.split() == [*met, f"localhost:{port if leased else 8888}", "192.168.1.100:8888"]
    lease.release()
