"""One test's ranks on several nodes, from the start of the nodes to the last of their processes gone."""

from __future__ import annotations

import base64
import os
import pickle
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from triton_dist import env
from triton_dist.testing.nodes.frames import Message
from triton_dist.testing.nodes.hosts import Host
from triton_dist.testing.nodes.remote import NodeError, RemoteNode, with_news
from triton_dist.testing.ranks.job import TIME_TO_FAIL_TOO
from triton_dist.testing.ranks.record import JobRecord, RankRecord
from triton_dist.testing.ranks.task import Task

# In seconds: for the launch command and the imports of a node; for stacks, also native ones; for a node to end.
_TIME_TO_COME = 60.0
_TIME_TO_EXPLAIN = 60.0
_TIME_TO_END = 20.0
_LOOK = 0.1
# Variables that say something of a host, or of a user's session there: each node has its own.
_OF_A_HOST = frozenset(
    {
        "ASCEND_RT_VISIBLE_DEVICES",
        "ASCEND_VISIBLE_DEVICES",
        "GLOO_SOCKET_IFNAME",
        "HOME",
        "HOSTNAME",
        "LOGNAME",
        "MAIL",
        "OLDPWD",
        "PWD",
        "SHELL",
        "SHLVL",
        "TERM",
        "TMPDIR",
        "USER",
        "XDG_RUNTIME_DIR",
    }
)
_OF_A_LOGIN = "SSH_"


@dataclass(frozen=True)
class Wishes:
    """What a node is to lease, and for whom.

    Attributes:
        npus, allow_busy: --npus and --allow-busy-npus, which are for each node.
        worker: the name of this process in pytest-xdist.
        test: the name of the test.
    """

    npus: str
    allow_busy: bool
    worker: str
    test: str


class NodesJob:
    """Ranks that run one task, as many on each of several nodes.

    Attributes:
        record: what became of it so far; complete after `run`.
        npus: what it had, as HOST:NUMBER; empty before it had all.
        since: when it got them, on the monotonic clock, in seconds.
    """

    def __init__(
        self, hosts: Sequence[Host], task: Task, wishes: Wishes, session: str, *, native_stacks: bool = False
    ) -> None:
        """Args:
        session: the rendezvous name of the job, known to nobody else.
        native_stacks: at a time-out, have a debugger of each host tell them.
        """
        self.record = JobRecord([RankRecord(rank) for rank in range(task.world_size)])
        self.npus: tuple[str, ...] = ()
        self.since = 0.0
        self._hosts = hosts
        self._task = task
        self._wishes = wishes
        self._session = session
        self._native_stacks = native_stacks
        self._nodes: list[RemoteNode] = []

    def run(self, timeout: float, while_waiting: Callable[[], None]) -> None:
        """Starts the nodes and returns when nothing of the job is left; then `record` is complete.

        Args:
            timeout: how long the ranks may take, in seconds, from when the job has all its NPUs.
            while_waiting: called now and then; what it raises ends the job.

        Raises:
            NodeError: a node did not come, or cannot give what it is asked for.
        """
        try:
            for number, host in enumerate(self._hosts):
                self._nodes.append(RemoteNode(host, number))
            self._lease(while_waiting)
            self._start()
            self._watch(timeout, while_waiting)
        finally:
            self._end()

    @property
    def _ranks_a_node(self) -> int:
        return self._task.world_size // len(self._hosts)

    # ------------------------------------------------------------------------------------- leases

    def _lease(self, while_waiting: Callable[[], None]) -> None:
        """Gets all NPUs that the job needs, of one host after the other, in an order that is the same for all jobs."""
        greeting = {
            "do": "begin",
            "environ": _environ_of_any_host(),
            "path": sys.path,
            "directory": os.getcwd(),
            "npus": self._wishes.npus,
            "allow_busy": self._wishes.allow_busy,
            "worker": self._wishes.worker,
            "test": self._wishes.test,
        }
        for node in self._nodes:
            node.send(greeting)
        deadline = time.monotonic() + _TIME_TO_COME
        there = {}
        for node in self._nodes:
            there[node] = self._answer(node, "here", while_waiting, deadline)
            node.identity = there[node]["identity"]
        in_order = sorted(self._nodes, key=lambda node: (node.identity, node.number))
        leased: dict[int, Message] = {}
        for _, group in groupby(in_order, key=lambda node: node.identity):
            of_host = list(group)
            needed, has = self._ranks_a_node * len(of_host), there[of_host[0]]["npus"]
            if needed > has:
                names = " and ".join(node.host.name for node in of_host)
                raise NodeError(f"{needed} ranks on host {names} need {needed} NPUs, and there are {has}")
            of_host[0].send({"do": "gate"})
            self._answer(of_host[0], "gated", while_waiting)
            for node in of_host:
                node.send({"do": "lease", "count": self._ranks_a_node})
                leased[node.number] = self._answer(node, "leased", while_waiting)
        for node in self._nodes:
            node.send({"do": "open gate"})
        self.since = time.monotonic()
        self.npus = tuple(f"{node.host.name}:{npu}" for node in self._nodes for npu in leased[node.number]["npus"])
        self._port, self._place = leased[0]["port"], there[self._nodes[0]]["place"]

    def _answer(
        self, node: RemoteNode, wanted: str, while_waiting: Callable[[], None], deadline: float | None = None
    ) -> Message:
        while True:
            for message in node.receive():
                if message["is"] == wanted:
                    return message
                if message["is"] == "failed":
                    raise NodeError(f"host {node.host.name}: {message['text']}")
            if node.is_lost:
                raise NodeError(node.describe_end())
            if deadline is not None and time.monotonic() > deadline:
                raise NodeError(
                    f"host {node.host.name} did not answer within {_TIME_TO_COME:g} s: does --dist-launch lead there?"
                )
            with_news([node], _LOOK)
            while_waiting()

    def _start(self) -> None:
        order = {
            "do": "start",
            "task": base64.b64encode(pickle.dumps(self._task)).decode(),
            "nodes": len(self._nodes),
            "address": self._hosts[0].address,
            "port": self._port,
            "place": self._place,
            "session": self._session,
        }
        for node in self._nodes:
            node.send({**order, "number": node.number})

    # ---------------------------------------------------------------------------- while ranks run

    def _watch(self, timeout: float, while_waiting: Callable[[], None]) -> None:
        """Returns when all ranks have exited, or the job is to be ended."""
        leaving = False
        failed_at: float | None = None
        while any(record.status is None for record in self.record.ranks):
            now, deadline = time.monotonic(), self.since + timeout
            if self.record.broken is not None:
                return
            if failed_at is None and any(record.failed for record in self.record.ranks):
                failed_at = now
            if failed_at is not None and now >= failed_at + TIME_TO_FAIL_TOO:
                return
            if now >= deadline:
                self.record.timeout = timeout
                self._explain(while_waiting)
                return
            if not leaving and all(record.done for record in self.record.ranks):
                leaving = True
                for node in self._nodes:
                    node.send({"do": "leave"})
            limit = deadline if failed_at is None else failed_at + TIME_TO_FAIL_TOO
            for node in with_news(self._nodes, min(_LOOK, limit - now)):
                for message in node.receive():
                    self._hear(node, message)
                if node.is_lost:
                    self.record.broken = node.describe_end()
            while_waiting()

    def _hear(self, node: RemoteNode, message: Message) -> None:
        what = message["is"]
        if what == "failed":
            self.record.broken = f"host {node.host.name}: {message['text']}"
        elif what == "started":
            self.record.ranks[message["rank"]].pid = message["pid"]
        elif what == "rank":
            # When is told by this host's clock: those of others may count from another moment.
            self.record.ranks[message["rank"]].take({**message["says"], "at": time.monotonic()})
        elif what == "exited":
            record = self.record.ranks[message["rank"]]
            record.status, record.ended_by_us = message["status"], message["ended"]
        elif what == "explained":
            for rank, told in message["ranks"].items():
                record = self.record.ranks[int(rank)]
                record.stacks, record.waits, record.native = told["stacks"], told["waits"], told["native"]
            several = {f"{node.host.name}-{name}": text for name, text in message["hardware"].items()}
            self.record.hardware.update(several)
        elif what == "ended":
            for rank, told in message["ranks"].items():
                record = self.record.ranks[int(rank)]
                record.stdout, record.stderr, record.crash = told["stdout"], told["stderr"], told["crash"]

    def _explain(self, while_waiting: Callable[[], None]) -> None:
        for node in self._nodes:
            node.send({"do": "explain", "natively": self._native_stacks})
        self._hear_all_until("explained", _TIME_TO_EXPLAIN, while_waiting)

    def _hear_all_until(self, last: str, seconds: float, while_waiting: Callable[[], None] = lambda: None) -> None:
        """Hears each node until it has said `last`, is lost, or `seconds` are over."""
        waited_for = {node for node in self._nodes if not node.is_lost}
        deadline = time.monotonic() + seconds
        while waited_for and (left := deadline - time.monotonic()) > 0:
            for node in with_news(waited_for, min(_LOOK, left)):
                for message in node.receive():
                    self._hear(node, message)
                    if message["is"] == last:
                        waited_for.discard(node)
                if node.is_lost:
                    waited_for.discard(node)
            while_waiting()

    # -------------------------------------------------------------------------------- at the end

    def _end(self) -> None:
        broken = self.record.broken
        for record in self.record.ranks:
            record.ended_by_us |= record.status is None
        for node in self._nodes:
            node.send({"do": "end", "suspect": self.record.why_npus_are_suspect()})
        try:
            self._hear_all_until("ended", _TIME_TO_END)
        finally:
            for node in self._nodes:
                node.close()
            # What else broke was the end itself.
            self.record.broken = broken


def _environ_of_any_host() -> dict[str, Any]:
    """Variables of this process that its ranks have on every host."""
    return {
        name: value
        for name, value in env.child_environ().items()
        if name not in _OF_A_HOST and not name.startswith(_OF_A_LOGIN)
    }
