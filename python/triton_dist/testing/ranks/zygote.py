"""The process that ranks are forked from: it has imported what they need, and run nothing.

A process forked from one that has run an OpenMP region, a backward or a collective hangs in its own first one.
So the zygote is a fresh interpreter, runs no operator, and has no thread but its own.

It serves pytest and its xdist workers, each over a channel of its own. A rank that is fit for another test after its
own is kept until a test asks for one with the same `key`, which stands for all that a rank cannot change any more.

    {"do": "start", "job": 5, "rank": 3, "key": "…", "keep": true, …}, with the rank's descriptors
          ->  {"is": "started", "job": 5, "rank": 3, "pid": 4242, "reused": false}
    a rank is done and kept  ->  {"is": "exited", "job": 5, "rank": 3, "status": 0, "ended": false}
    a rank ends              ->  {"is": "exited", "job": 5, "rank": 3, "status": its wait status, "ended": …}
    {"do": "end", "job": 5}: end whatever is left of the job          ->  {"is": "ended", "job": 5}

On real NPUs a process is bound to the one that it has initialised. Idle ranks there hold their NPUs, all those of their
last job together, until a job adopts them with their NPUs or anybody else waits for one of these.

    {"do": "adopt", "key": "…", "count": 2}  ->  {"is": "adopted", "npus": [4, 5]}, with descriptors that hold them

It ends with the process that started it, and all its descendants end before it. Being a subreaper it sees every one
of them, whatever process group or session they moved to.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import shutil
import signal
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from triton_dist.runtime import backend
from triton_dist.testing.leases.directory import LeaseDirectory
from triton_dist.testing.leases.errors import LeaseError
from triton_dist.testing.leases.line import in_line
from triton_dist.testing.ranks import rank
from triton_dist.testing.ranks.processes import Orphans, become_subreaper, die_with_parent, end_descendants
from triton_dist.testing.ranks.rank import Descriptors
from triton_dist.testing.ranks.wire import Channel, Listener, Message, close_all

# Seconds between two looks whether anybody waits for an NPU that idle ranks hold.
_LOOK_AT_LINE = 0.05
# Seconds that ranks which have done a job may take to get ready for the next.
_TIME_TO_GET_IDLE = 2.0
# The kind of leases that are not of simulated NPUs.
_REAL = "npu"
# What ranks import before they come to the test. One that is missing or broken is left to the test that wants it.
_PRELOADED = (
    "pytest",
    "numpy",
    "torch",
    "torch.distributed",
    # torch.testing.assert_close imports it, with sympy, at its first call: 0.7 s of CPU time in every rank.
    "torch.distributed.tensor",
    "triton",
    "triton.language",
    "triton_dist.language",
    "triton_dist.language.extra.libshmem_device",
)
_PRELOADED_FOR_SIMULATOR = (
    "shmem",
    "torch_npu",
    "triton_dist.compiler.backend",
    "triton_dist.runtime.launcher",
    # Of an editable install: the first import looks whether csrc must be built again.
    "triton_dist._build_info",
)


def main(settings: dict[str, Any]) -> NoReturn:
    """Serves until the other end of the channel is closed.

    Args:
        settings: "channel", the descriptor of a channel to the process to end with; "listener", the descriptor that
            further ones connect to; "meetings", a directory for files where ranks meet; "parent", the pid to end with,
            or None; "kept", how many idle ranks may be kept; "workers", the descriptor of a channel on which workers
            of pytest-xdist are asked for, or None.
    """
    if settings["workers"] is not None:
        # Out of the terminal's reach, but in its session, so that workers can join pytest's process group.
        os.setpgid(0, 0)
    if settings["parent"] is not None:
        die_with_parent(settings["parent"], signal.SIGTERM)
    owner = Channel.of_descriptor(settings["channel"])
    listener = Listener.of_descriptor(settings["listener"])
    began = time.monotonic()
    # Looking for garbage among what imports make takes a sixth of their time, and finds little.
    gc.disable()
    _preload()
    _compute_ahead()
    # Without this a rank's first collection would touch, and so copy, every page that it shares with the zygote.
    gc.freeze()
    gc.enable()
    if settings["workers"] is not None:
        from triton_dist.testing.workers.maker import fork_zygote

        fork_zygote(Channel.of_descriptor(settings["workers"]), (owner, listener))
    become_subreaper()
    Zygote(owner, listener, settings["kept"], Path(settings["meetings"])).serve(time.monotonic() - began)
    # Of use to nobody any more, and who made it may have been killed.
    shutil.rmtree(settings["meetings"], ignore_errors=True)
    os._exit(0)


def _preload() -> None:
    simulated = backend.active() == "sim"
    for name in _PRELOADED + (_PRELOADED_FOR_SIMULATOR if simulated else ()):
        try:
            importlib.import_module(name)
        except BaseException:
            # Kept for the one who asks why a rank had to import it again.
            traceback.print_exc()


def _compute_ahead() -> None:
    """Computes what every rank would compute for itself with its first kernel: hashes of files, no operators."""
    compiler = sys.modules.get("triton.compiler.compiler")
    if compiler is not None:
        compiler.triton_key()


@dataclass
class _Job:
    """A test's ranks that are not done yet.

    Attributes:
        client: who asked for them.
        number: the client's name for the job.
        meeting: the file where its ranks meet for torch.distributed.
        pids: of its ranks.
        ending: whether what is left of it is being ended.
    """

    client: Channel
    number: int
    meeting: Path
    pids: set[int] = field(default_factory=set)
    ending: bool = False


@dataclass
class _Rank:
    """A process.

    Attributes:
        control: the way to it.
        key: what it can be reused for.
        number: its last rank number.
        job: the job that it works for; None if it works for none.
        idle: whether it can be given a job.
        idle_since: on the monotonic clock, in seconds.
        mute: whether nothing more will be heard of it.
        npus: the real NPUs of its job, to one of which it is bound; none where they are simulated.
        lease: descriptors that hold these, beside its own.
        adopted_by: the client whose next job it is kept for, with its NPUs.
    """

    pid: int
    control: Channel
    key: str
    number: int
    job: _Job | None = None
    idle: bool = False
    idle_since: float = 0.0
    mute: bool = False
    npus: tuple[int, ...] = ()
    lease: tuple[int, ...] = ()
    adopted_by: Channel | None = None


@dataclass(frozen=True)
class _Adoption:
    """A wish for idle ranks with their NPUs.

    Attributes:
        client: whose it is.
        key, count: of the ranks.
        deadline: when it is answered at the latest, on the monotonic clock, in seconds.
    """

    client: Channel
    key: str
    count: int
    deadline: float


class Zygote:
    """The serving side, from the first fork to the end of the process."""

    def __init__(self, owner: Channel, listener: Listener, most_idle: int, meetings: Path) -> None:
        self._owner = owner
        self._meetings = meetings
        self._jobs_so_far = 0
        self._listener = listener
        self._most_idle = most_idle
        self._clients: dict[int, Channel] = {owner.fileno(): owner}
        self._ranks: dict[int, _Rank] = {}  # by pid, oldest first
        self._jobs: list[_Job] = []
        self._adoptions: list[_Adoption] = []
        self._orphans = Orphans()
        self._stopped = False
        # Signals only have to end the wait in `serve`; what there is to do is found out there.
        self._wake, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wake_writer = wake
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, *_: object) -> None:
        self._stopped = True

    def serve(self, seconds: float) -> None:
        """Returns when nobody is to be served any more, and no descendant is left.

        Args:
            seconds: what it took to get ready, for the clients.
        """
        ready_message = {"is": "ready", "seconds": seconds}
        self._owner.send(ready_message)
        while not self._stopped:
            for fd in self._wait():
                if fd == self._wake:
                    os.read(self._wake, 4096)
                elif fd == self._listener.fileno():
                    if (client := self._listener.accept()) is not None:
                        self._clients[client.fileno()] = client
                        client.send(ready_message)
                elif (client := self._clients.get(fd)) is not None:
                    self._hear_client(client)
                else:
                    self._hear_rank(fd)
            self._reap()
            self._end_jobs()
            self._answer_adoptions()
            self._give_way()
        self._end_all()

    def _wait(self) -> list[int]:
        poll = select.poll()
        for fd in (self._wake, self._listener.fileno(), *self._clients):
            poll.register(fd, select.POLLIN)
        for process in self._ranks.values():
            if not process.mute:
                poll.register(process.control.fileno(), select.POLLIN)
        # While something is being ended, processes may come that no signal tells of.
        ending = any(job.ending for job in self._jobs)
        looking = bool(self._adoptions or self._idle_and_bound())
        patience = 2 if ending else _LOOK_AT_LINE * 1e3 if looking else None
        return [fd for fd, _ in poll.poll(patience)]

    # ------------------------------------------------------------------------------------- clients

    def _hear_client(self, client: Channel) -> None:
        received = client.receive()
        if received is None:
            self._lose(client)
            return
        message, fds = received
        if message["do"] == "adopt":
            deadline = time.monotonic() + _TIME_TO_GET_IDLE
            self._adoptions.append(_Adoption(client, message["key"], message["count"], deadline))
            return
        job = self._job(client, message["job"])
        if message["do"] == "start":
            self._start(job, message, fds)
        else:
            self._begin_to_end(job)

    def _lose(self, client: Channel) -> None:
        del self._clients[client.fileno()]
        self._adoptions = [asked for asked in self._adoptions if asked.client is not client]
        for job in self._jobs:
            if job.client is client:
                self._begin_to_end(job)
        self._end_adopted(client)
        if client is self._owner:
            self._stopped = True
        client.close()

    def _tell(self, job: _Job, message: Message) -> None:
        if job.client.fileno() in self._clients:
            job.client.send({"job": job.number, **message})

    def _job(self, client: Channel, number: int) -> _Job:
        for job in self._jobs:
            if job.client is client and job.number == number:
                return job
        self._jobs_so_far += 1
        self._jobs.append(_Job(client, number, self._meetings / str(self._jobs_so_far)))
        return self._jobs[-1]

    def _start(self, job: _Job, message: Message, fds: list[int]) -> None:
        number, key, npus = message["rank"], message["key"], tuple(message["npus"])
        told = {name: message[name] for name in ("rank", "keep", "spawned", "npus")} | {"meeting": str(job.meeting)}
        process = None
        if message["keep"]:
            process = self._bound_to(job.client, number, npus) if npus else self._fitting(number, key)
        reused = process is not None and process.control.send(told, fds)
        if process is None or not reused:
            process = self._fork(number, key, fds)
            process.control.send(told, fds)
        close_all(process.lease)
        process.npus, process.lease, process.adopted_by = npus, (), None
        if npus and message["keep"]:
            process.lease = tuple(Descriptors.of_list(fds).lease)
        close_all(fd for fd in fds if fd not in process.lease)
        process.number, process.job, process.idle = number, job, False
        job.pids.add(process.pid)
        answer = {"is": "started", "rank": number, "pid": process.pid, "reused": reused}
        self._tell(job, answer)

    def _fitting(self, number: int, key: str) -> _Rank | None:
        """An idle rank, best one that had the same number: it has the test's modules as this one wants them.

        Of several the one that is idle for the longest, so that each has its turn.
        """
        fitting = [process for process in self._idle() if process.key == key]
        return next((p for p in fitting if p.number == number), fitting[0] if fitting else None)

    def _idle(self) -> list[_Rank]:
        """Idle ranks that nobody has adopted, the one that is idle for the longest first."""
        idle = (p for p in self._ranks.values() if p.idle and p.adopted_by is None)
        return sorted(idle, key=lambda process: process.idle_since)

    # ------------------------------------------------------------------------ ranks bound to NPUs

    def _idle_and_bound(self) -> dict[tuple[int, ...], list[_Rank]]:
        """Idle ranks that hold NPUs and that nobody has adopted, by these."""
        groups: dict[tuple[int, ...], list[_Rank]] = {}
        for process in self._idle():
            if process.npus:
                groups.setdefault(process.npus, []).append(process)
        return groups

    def _answer_adoptions(self) -> None:
        for asked in list(self._adoptions):
            unready = False
            group: list[_Rank] = []
            for npus in {process.npus for process in self._ranks.values()}:
                ranks = [p for p in self._ranks.values() if p.npus == npus and p.job is None and p.adopted_by is None]
                if len(npus) == len(ranks) == asked.count and all(p.key == asked.key and not p.mute for p in ranks):
                    if all(process.idle for process in ranks):
                        group = ranks
                    else:
                        # They have just done their last job.
                        unready = True
            if not group and unready and time.monotonic() < asked.deadline:
                continue
            self._adoptions.remove(asked)
            for process in group:
                process.adopted_by = asked.client
            npus, lease = (group[0].npus, group[0].lease) if group else ((), ())
            asked.client.send({"is": "adopted", "job": 0, "npus": npus}, lease)

    def _bound_to(self, client: Channel, number: int, npus: tuple[int, ...]) -> _Rank | None:
        """The rank of this number that `client` has adopted with `npus`."""
        adopted = (p for p in self._ranks.values() if p.idle and p.adopted_by is client)
        return next((p for p in adopted if p.npus == npus and p.number == number), None)

    def _end_adopted(self, client: Channel) -> None:
        for process in self._ranks.values():
            if process.adopted_by is client:
                self._end_idle(process)

    def _give_way(self) -> None:
        """Ends idle ranks whose NPUs somebody waits for, or whose companions are gone: they hold all or nothing."""
        groups = self._idle_and_bound()
        if not groups:
            return
        wanted: set[int] = set()
        with contextlib.suppress(LeaseError):
            for waiting in in_line(LeaseDirectory.of_this_host()):
                if waiting.request.kind == _REAL:
                    wanted |= waiting.request.npus
        for npus, group in groups.items():
            there = [process for process in self._ranks.values() if process.npus == npus]
            if wanted & set(npus) or len(there) < len(npus):
                for process in group:
                    self._end_idle(process)

    def _end_idle(self, process: _Rank) -> None:
        process.idle, process.adopted_by = False, None
        os.kill(process.pid, signal.SIGKILL)

    # --------------------------------------------------------------------------------------- ranks

    def _fork(self, number: int, key: str, of_job: list[int]) -> _Rank:
        parent = os.getpid()
        # What is in a buffer now would be written by the child as well.
        sys.stdout.flush()
        sys.stderr.flush()
        ours, theirs = Channel.pair()
        pid = os.fork()
        if pid == 0:
            ours.close()
            # It gets its own with the job, and can close these then.
            close_all(of_job)
            self._become_rank(parent, theirs)
        theirs.close()
        self._ranks[pid] = process = _Rank(pid, ours, key, number)
        return process

    def _become_rank(self, parent: int, control: Channel) -> NoReturn:
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.setpgid(0, 0)
            die_with_parent(parent)
            # Its descendants are seen by itself first, so that it can tell whether it has any left.
            become_subreaper()
            close_all((self._wake, self._wake_writer))
            self._listener.close()
            for channel in (*self._clients.values(), *(process.control for process in self._ranks.values())):
                channel.close()
            for process in self._ranks.values():
                close_all(process.lease)
            status = rank.main(control)
        except BaseException:
            traceback.print_exc()
        finally:
            # Never back into the zygote's loop, and none of its exit handlers.
            os._exit(status)

    def _hear_rank(self, fd: int) -> None:
        process = next((p for p in self._ranks.values() if p.control.fileno() == fd), None)
        if process is None:
            return
        received = process.control.receive()
        if received is None:
            # It is about to end, and will be reaped; or its test has closed all that it found open.
            process.idle, process.mute = False, True
            return
        message, _ = received
        if message["is"] == "released":
            self._tell_exit(process, 0, ended=False)
        else:
            process.idle, process.idle_since = True, time.monotonic()
            self._shed()

    def _shed(self) -> None:
        """Ends idle ranks that are too many, those idle for the longest first."""
        idle = self._idle()
        for process in idle[: max(0, len(idle) - self._most_idle)]:
            self._end_idle(process)

    def _tell_exit(self, process: _Rank, status: int, *, ended: bool) -> None:
        job, process.job = process.job, None
        if job is not None:
            job.pids.discard(process.pid)
            self._tell(job, {"is": "exited", "rank": process.number, "status": status, "ended": ended})

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._exited(pid, status)

    def _exited(self, pid: int, status: int) -> None:
        process = self._ranks.pop(pid, None)
        if process is None:
            return
        process.control.close()
        close_all(process.lease)
        self._tell_exit(process, status, ended=process.job is not None and process.job.ending)
        self._orphans.expect()

    # ----------------------------------------------------------------------------------- at the end

    def _begin_to_end(self, job: _Job) -> None:
        # Those that have died already did so on their own account.
        self._reap()
        # Adopted, but not started any more.
        self._end_adopted(job.client)
        job.ending = True
        for pid in job.pids:
            os.kill(pid, signal.SIGKILL)

    def _end_jobs(self) -> None:
        """Tells clients of jobs that have ended: no process of theirs is left."""
        if not any(job.ending for job in self._jobs):
            return
        none_left = self._orphans.end(set(self._ranks))
        for job in [job for job in self._jobs if job.ending and not job.pids and none_left]:
            self._jobs.remove(job)
            job.meeting.unlink(missing_ok=True)
            self._tell(job, {"is": "ended"})

    def _end_all(self) -> None:
        self._reap()
        # Whoever still has a job is to see that its ranks were ended for want of this process, not by its own wish.
        for client in self._clients.values():
            client.close()
        self._clients.clear()
        for job in self._jobs:
            job.ending = True
        end_descendants(set(self._ranks), self._exited)
