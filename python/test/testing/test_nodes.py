"""Tests on several nodes: where these are, what their ranks see, and how they end."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_dist.testing.leases.directory import LeaseDirectory
from triton_dist.testing.leases.line import gate
from triton_dist.testing.nodes.frames import Frames
from triton_dist.testing.nodes.hosts import parse_hosts
from triton_dist.testing.nodes.job import NodesJob, Wishes
from triton_dist.testing.nodes.remote import NodeError, RemoteNode, with_news
from triton_dist.testing.ranks.task import Task, pickled_call

from .conftest import PATIENCE, Suite, wait_until
from .test_endings import parent_of
from .test_failures import section
from .test_ranks import properties

# --------------------------------------------------------------------------- where the nodes are

WORDS = st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1)


@given(WORDS)
def test_a_launch_command_gets_the_words_whether_it_or_a_shell_reads_them(words: list[str]) -> None:
    hosts = parse_hosts("a, b=10.0.0.2", "run -h {host} sh -c 'cd /work && exec {command}'")
    assert [(host.name, host.address) for host in hosts] == [("a", "a"), ("b", "10.0.0.2")]
    *head, text = hosts[1].command(words)
    assert head == ["run", "-h", "b", "sh", "-c"]
    assert shlex.split(text.removeprefix("cd /work && exec ")) == words
    (plain,) = parse_hosts("a", "docker exec -i {host} {command}")
    assert plain.command(words) == ["docker", "exec", "-i", "a", *words]


@pytest.mark.parametrize(
    ("hosts", "launch", "complaint"),
    [
        ("a,,b", "ssh {host} {command}", "--dist-hosts=a,,b is not allowed: it takes HOST or HOST=ADDRESS"),
        ("a,b=", "ssh {host} {command}", "--dist-hosts=a,b= is not allowed"),
        ("-oProxyCommand=x", "ssh {host} {command}", "is not allowed: it takes HOST"),
        ("a,a", "ssh {host} {command}", "--dist-hosts=a,a is not allowed: it names a host twice"),
        ("a", "ssh {host}", "--dist-launch='ssh {host}' is not allowed: it takes a command with {host} and {command}"),
        ("a", "ssh '{command}", "No closing quotation"),
    ],
)
def test_what_names_no_hosts_is_one_line(hosts: str, launch: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)) as caught:
        parse_hosts(hosts, launch)
    assert "\n" not in str(caught.value)


def test_what_a_login_shell_says_does_not_disturb_messages() -> None:
    source, target = os.pipe()
    null = os.open(os.devnull, os.O_WRONLY)
    theirs, ours = Frames(os.open(os.devnull, os.O_RDONLY), target), Frames(source, null)
    os.write(target, b"Welcome to b!\nno line's end: ")
    assert theirs.send({"is": "here", "text": "é\n" * 9})
    os.write(target, b"triton-dist {broken\n")
    assert ours.receive() == [{"is": "here", "text": "é\n" * 9}]
    before = ours.ended
    os.close(target)
    assert ours.receive() == []
    assert (before, ours.ended) == (False, True)
    assert ours.noise == b"Welcome to b!\nno line's end: \ntriton-dist {broken\n"
    assert theirs.send({"is": "late"}) is False
    for fd in (source, null, theirs.source):
        os.close(fd)


def test_one_job_at_a_time_gathers_npus_of_a_host(tmp_path: Path) -> None:
    directory = LeaseDirectory(tmp_path / "leases")

    def give_up() -> None:
        raise TimeoutError

    with gate(directory, give_up):
        with pytest.raises(TimeoutError):
            gate(directory, give_up).__enter__()
        assert directory.identity() == LeaseDirectory(tmp_path / "leases").identity()
    with gate(directory, give_up):
        pass


# ------------------------------------------------------------------------------------ whole runs

# What ssh makes of its words: a shell's text. With the greeting that a login shell may have.
SSH = """#!/bin/sh
test "$1" = -q && shift
echo "Welcome to $1"
shift
exec sh -c "$*"
"""
HOSTS = "--dist-hosts=a=127.0.0.1,b=127.0.0.1"

TESTS = """
import os, socket
import pytest
import torch
import torch.distributed as dist

def works(rank, world_size, start):
    total = torch.full((4,), start + rank).npu()
    dist.all_reduce(total)
    assert total.tolist() == [2 * start + 1] * 4
    names = ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "WORLD_SIZE", "OF_THE_TEST")
    print("SEEN", rank, *(os.environ[name] for name in names), torch.npu.current_device(), torch.npu.device_count())
    print("ADDRESS", rank, socket.gethostbyname(os.environ["MASTER_ADDR"]), os.path.basename(os.getcwd()))
    assert rank == 0, "only on the first node"

@pytest.mark.dist(world_size=2, nodes=2)
def test_works(dist_test, monkeypatch):
    monkeypatch.setenv("OF_THE_TEST", "yes")
    dist_test(works, args=(10,))

def never(rank, world_size):
    pass

def test_uneven(dist_test):
    dist_test(never, world_size=3, nodes=2)

def test_too_many_nodes(dist_test):
    dist_test(never, world_size=3, nodes=3)

@pytest.mark.dist(world_size=10, nodes=2)
def test_too_many_ranks(dist_test):
    dist_test(never)

@pytest.mark.dist(nodes="2")
def test_no_number(dist_test):
    dist_test(never)
"""


def with_ssh(suite: Suite) -> list[str]:
    """Options for two hosts that a stand-in for ssh leads to."""
    suite.write("ssh", SSH)
    (suite.path / "ssh").chmod(0o755)
    return [HOSTS, f"--dist-launch={suite.path / 'ssh'} -q {{host}} {{command}}", "-odist_timeout=240"]


def test_ranks_on_two_hosts(suite: Suite) -> None:
    suite.write("test_it.py", TESTS)
    result = suite.run("--color=no", "--junit-xml=report.xml", *with_ssh(suite))
    result.assert_outcomes(failed=5)
    output = result.stdout.str()
    told = section(output, "test_works")
    assert told.startswith("rank 1 of 2: AssertionError: only on the first node\n")
    assert "test_it.py:14: in works" in told
    assert "SEEN 1 0 1 1 2 2 yes 0 1\nADDRESS 1 127.0.0.1 suite\n" in told
    assert "SEEN 0" not in told
    seen = properties(suite.path / "report.xml")["test_works"]
    assert (seen["world_size"], seen["npus"]) == ("2", "a:0,b:1")
    assert section(output, "test_uneven") == (
        "dist_test: 3 ranks on 2 nodes: each node has as many, so nodes divides world_size\n"
    )
    assert section(output, "test_too_many_nodes") == (
        "dist_test: nodes=3: --dist-hosts=a=127.0.0.1,b=127.0.0.1 names 2\n"
    )
    assert section(output, "test_too_many_ranks") == (
        "dist_test: 10 ranks on host a and b need 10 NPUs, and there are 8\n"
    )
    assert "nodes is '2': it takes an integer of 1 or more" in section(output, "test_no_number")


UNREACHABLE = """
import pytest

def never(rank, world_size):
    pass

@pytest.mark.dist(nodes=2)
def test_it(dist_test):
    dist_test(never)
"""


def test_a_host_that_cannot_be_reached(suite: Suite) -> None:
    suite.write("test_it.py", UNREACHABLE)
    launch = "sh -c 'echo no route to {host} >&2; exit 255' {command}"
    result = suite.run("--color=no", HOSTS, f"--dist-launch={launch}")
    result.assert_outcomes(failed=1)
    lost = "dist_test: the node on host a is lost: `sh -c echo no route to a >&2; exit 255 */python*` ended with exit "
    result.stdout.fnmatch_lines([f"{lost}status 255: no route to a"])


def test_why_a_node_cannot_be_had() -> None:
    (host,) = parse_hosts("a", "/nowhere/ssh {host} {command}")
    with pytest.raises(NodeError, match="host a: /nowhere/ssh cannot be started: No such file or directory"):
        RemoteNode(host, 0)
    (host,) = parse_hosts("a", "sh -c 'exec {command} < /dev/null'")
    node = RemoteNode(host, 0)
    wait_until(lambda: node.receive() or node.is_lost, "the end of the node")
    assert "ended with exit status 0 (does it pass standard input on, as docker exec -i does?)" in node.describe_end()
    node.close()
    (host,) = parse_hosts("a", "{command}")
    node = RemoteNode(host, 0)
    node.send({"do": "begin", "environ": {}, "path": sys.path, "directory": "/not/there"})
    wait_until(lambda: with_news([node], 1), "the node's answer")
    (answer,) = node.receive()
    assert answer["text"].startswith("/not/there cannot be entered (No such file or directory): the tests' files must")
    node.close()


STUCK = """
import time

def stuck(rank, world_size, file):
    print("said by", rank)
    open(file, "w").close()
    time.sleep(1000)
"""


def test_a_time_out_tells_where_the_ranks_of_a_node_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stuck_worker.py").write_text(STUCK)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("TRITON_DIST_LEASE_DIR", str(tmp_path / "leases"))
    debugger = tmp_path / "eu-stack"
    debugger.write_text('#!/bin/sh\necho "TID ${1#--pid=}:"\n')
    debugger.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    task = Task(
        world_size=1,
        backend="gloo",
        environ={},
        directory=str(tmp_path),
        sys_path=sys.path,
        argv=["pytest"],
        modules={},
        assertions=None,
        traceback_style="short",
        call=pickled_call(importlib.import_module("stuck_worker").stuck, (tmp_path / "here",)),
        seed=1,
        coverage=None,
        terminal=False,
        debugged=None,
    )
    (host,) = parse_hosts("a=127.0.0.1", "{command}")
    job = NodesJob([host], task, Wishes("sim:1", False, "", "test_stuck"), "a session", native_stacks=True)
    began: list[float] = []

    def run_out_of_time() -> None:
        # Not before the rank is where it is to be seen.
        if (tmp_path / "here").exists():
            began.append(job.since)
            job.since -= 1000

    job.run(PATIENCE, run_out_of_time)
    (record,) = job.record.ranks
    assert job.record.timeout == PATIENCE
    assert record.stacks is not None
    assert "in stuck\n    time.sleep(1000)" in record.stacks
    assert record.native == f"TID {record.pid}:"
    assert record.stdout == "said by 0\n"
    assert job.npus == ("a:0",)
    assert began
    with pytest.raises(ProcessLookupError):
        os.kill(record.pid or 0, 0)


WAITING = """
import os, subprocess, time
import pytest

def waits(rank, world_size, folder):
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    print("said by", rank, flush=True)
    with open(f"{folder}/{rank}", "w") as file:
        file.write(str(os.getpid()))
    time.sleep(1000)

@pytest.mark.dist(nodes=2)
def test_waits(dist_test):
    dist_test(waits, backend="gloo", args=(os.path.dirname(__file__),))
"""


def pids_of(suite: Suite, module: str, *arguments: str) -> list[int]:
    """Processes of the suite that run a module of the nodes."""
    return [
        pid
        for pid, command in suite.processes().items()
        if f"python -m triton_dist.testing.nodes.{module} " in command
        and all(argument in command for argument in arguments)
    ]


def output_of(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=PATIENCE)
    print(output)
    return output


def test_kill_9_of_a_node(suite: Suite) -> None:
    suite.write("test_it.py", WAITING)
    process = suite.start("--color=no", *with_ssh(suite))
    wait_until(lambda: all((suite.path / str(rank)).exists() for rank in range(2)), "both ranks")
    assert suite.free_npus() == 6
    (elastic,) = pids_of(suite, "elastic", "--node-rank=1")
    os.kill(int(parent_of(elastic)), signal.SIGKILL)
    told = section(output_of(process), "test_waits")
    assert re.match(
        r"the node on host b is lost: `\S+/ssh -q b \S+` ended with exit status 137: Welcome to b\nKilled", told
    )
    suite.check_nothing_left(5)


def test_kill_9_of_an_elastic_agent(suite: Suite) -> None:
    suite.write("test_it.py", WAITING)
    process = suite.start("--color=no", *with_ssh(suite))
    wait_until(lambda: pids_of(suite, "elastic", "--node-rank=1"), "the agent")
    (elastic,) = pids_of(suite, "elastic", "--node-rank=1")
    os.kill(elastic, signal.SIGKILL)
    told = section(output_of(process), "test_waits")
    assert told.startswith("host b: torchrun's elastic agent was ended by SIGKILL")
    suite.check_nothing_left(1)


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c(suite: Suite, times: int) -> None:
    suite.write("test_it.py", WAITING)
    process = suite.start(*with_ssh(suite))
    wait_until(lambda: len(pids_of(suite, "elastic")) == 2, "both agents")
    for _ in range(times):
        os.killpg(process.pid, signal.SIGINT)
    assert "KeyboardInterrupt" in output_of(process)
    suite.check_nothing_left(5)


def test_kill_9_of_pytest(suite: Suite) -> None:
    suite.write("test_it.py", WAITING)
    process = suite.start(*with_ssh(suite))
    wait_until(lambda: len(pids_of(suite, "elastic")) == 2, "both agents")
    process.kill()
    process.communicate()
    suite.check_nothing_left(10)


def test_a_time_out_before_ranks_have_come(suite: Suite) -> None:
    suite.write("test_it.py", WAITING)
    result = suite.run("--color=no", "--dist-timeout=0.3", *with_ssh(suite))
    told = section(result.stdout.str(), "test_waits")
    assert told.startswith("time-out: ranks 0-1 of 2 were not done 0.3 s after the test got its NPUs\n")
    assert told.count("it had not come yet") == 2
