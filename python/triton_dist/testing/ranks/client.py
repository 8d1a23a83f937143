"""pytest's side of a zygote: start it or find it, have ranks started, end them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from triton_dist import env
from triton_dist.compiler import scratch
from triton_dist.testing.ranks.wire import Channel, Listener, Message, memory_file, read_text, readable

# The module path of pytest, not that of a fresh interpreter: the zygote must import the same torch as the tests.
_BOOTSTRAP = (
    "import json, sys; settings = json.loads(sys.argv[1]); sys.path[:] = settings['path']; "
    "from triton_dist.testing.ranks.zygote import main; main(settings)"
)
# In seconds: imports on a loaded machine, and a build where the package is an editable install; ranks that have been
# killed; a zygote that has been told to leave.
_TIME_TO_START = 600.0
_TIME_TO_END = 10.0
_TIME_TO_LEAVE = 3.0
_LOOK = 0.05
# What multiprocessing's resource tracker and the like may take to leave after the zygote was killed.
_TIME_FOR_ORPHANS = 0.3


class ZygoteError(RuntimeError):
    """The zygote did not start or did not do as told; the message says what is known of it."""


class ZygoteProcess:
    """A zygote that this process has started, and that ends with it. It gets ready in the background.

    Attributes:
        channel: this process's own way to it.
        workers: where it can be asked for workers of pytest-xdist; None if it cannot.
    """

    def __init__(self, kept: int, listener: Listener, *, workers: bool = False) -> None:
        """Args:
        kept: how many idle ranks it may keep.
        listener: where other processes of this user connect to it.
        workers: whether it is to make workers of pytest-xdist as well.

        Raises:
            ZygoteError: this system does not let it start.
        """
        self._scratch = ExitStack()
        try:
            meetings = self._scratch.enter_context(scratch.directory())
        except OSError as error:
            raise ZygoteError(f"no directory for temporary files, where ranks could meet: {error}") from None
        self.channel, theirs = Channel.pair()
        self.workers: Channel | None = None
        requests: Channel | None = None
        if workers:
            self.workers, requests = Channel.pair()
        passed = [theirs.fileno(), listener.fileno(), *([requests.fileno()] if requests is not None else [])]
        self._log = memory_file("triton-dist-zygote")
        settings = {
            "channel": theirs.fileno(),
            "listener": listener.fileno(),
            "kept": kept,
            "meetings": str(meetings),
            "workers": requests.fileno() if requests is not None else None,
            # The kernel watches the thread that starts the process, and only the main one lasts as long as pytest.
            "parent": os.getpid() if threading.current_thread() is threading.main_thread() else None,
            "path": sys.path,
        }
        # As torchrun does, because ranks share the cores. OpenMP reads it when torch is imported.
        threads = {} if env.OMP_NUM_THREADS.is_set() else {"OMP_NUM_THREADS": "1"}
        options = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        try:
            self._process = subprocess.Popen(
                [sys.executable, *options, "-c", _BOOTSTRAP, json.dumps(settings)],
                env=env.child_environ(**threads),
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                pass_fds=passed,
                # Out of the terminal's reach: Ctrl-C is for pytest to handle.
                start_new_session=not workers,
            )
        except OSError as error:
            os.close(self._log)
            self.channel.close()
            self._scratch.close()
            raise ZygoteError(f"the process that starts ranks cannot be started: {error}") from None
        finally:
            theirs.close()
            if requests is not None:
                requests.close()

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def describe_end(self) -> str:
        """How it ended, and what it wrote; to be asked only when it is gone."""
        status = self._process.wait()
        how = f"by {signal.Signals(-status).name}" if status < 0 else f"with exit status {status}"
        return f"the process that starts ranks (pid {self._process.pid}) ended {how}"

    def log(self) -> str:
        """What it wrote to its standard output and error."""
        return read_text(self._log)

    def end(self) -> None:
        """Ends the zygote, and with it whatever is left of its ranks; once is enough, more does no harm."""
        # Told first: where this wait is interrupted, by a second Ctrl-C for one, it ends them all the same.
        self.channel.close()
        try:
            self._process.wait(_TIME_TO_LEAVE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._scratch.close()

    def close(self) -> None:
        """Ends the zygote; its log is gone then."""
        self.end()
        os.close(self._log)


class ZygoteClient:
    """A zygote as one process uses it, whoever has started it.

    Attributes:
        channel: where its messages come in, for those who wait for several things.
        statuses: wait statuses of processes that have ended, by job and rank.
    """

    def __init__(self, channel: Channel, process: ZygoteProcess | None = None) -> None:
        """`process`: the zygote, if this process has started it."""
        self.channel = channel
        self._process = process
        self._ready = False
        self._lost = False
        self.statuses: dict[tuple[int, int], int] = {}
        self._jobs = 0
        self._groups: list[int] = []

    @classmethod
    def start(cls, kept: int) -> ZygoteClient:
        """One that serves this process alone; `kept`: how many idle ranks it may keep."""
        listener = Listener()
        try:
            process = ZygoteProcess(kept, listener)
        finally:
            listener.close()
        return cls(process.channel, process)

    @classmethod
    def connect(cls, address: str) -> ZygoteClient | None:
        """The one with this address; None if it is not there, or not on this host."""
        channel = Channel.connect(address)
        return None if channel is None else cls(channel)

    def is_alive(self) -> bool:
        if self._process is not None:
            return self._process.is_alive()
        return not self._lost

    def wait_until_ready(self, while_waiting: Callable[[], None] = lambda: None) -> None:
        """Waits until ranks can be started; `while_waiting` is called now and then and may raise.

        Raises:
            ZygoteError: the process ended, or is not ready after ten minutes.
        """
        deadline = time.monotonic() + _TIME_TO_START
        while not self._ready:
            if readable([self.channel], _LOOK):
                if self.receive() is None:
                    raise ZygoteError(self.describe_end(with_log=True))
                self._ready = True
            elif time.monotonic() > deadline:
                raise ZygoteError(f"the process that starts ranks was not ready after {_TIME_TO_START:g} s")
            while_waiting()

    def new_job(self) -> int:
        """The number of another job."""
        self._jobs += 1
        return self._jobs

    def adopt(self, key: str, count: int) -> tuple[tuple[int, ...], list[int]] | None:
        """Takes over real NPUs from `count` idle ranks that are bound to them; None if there are no such ranks.

        The ranks are kept for this process's next job, which must be on these NPUs.

        Returns:
            The numbers of the NPUs, and the descriptors that hold them.

        Raises:
            ZygoteError: the zygote is gone.
        """
        self.channel.send({"do": "adopt", "job": 0, "key": key, "count": count})
        while (received := self._receive()) is not None:
            message, fds = received
            if message["is"] == "adopted":
                return (tuple(message["npus"]), fds) if message["npus"] else None
        raise ZygoteError(self.describe_end())

    def start_rank(
        self,
        job: int,
        rank: int,
        key: str,
        fds: Sequence[int],
        *,
        keep: bool,
        spawned: bool = False,
        npus: Sequence[int] = (),
    ) -> None:
        """Asks for rank `rank` of `job` with copies of `fds`; {"is": "started"} or the end of the channel answers.

        Args:
            key: stands for all that a rank cannot change any more: only one that had the same is used again.
            keep: use one that has been kept, if there is one, and keep it for others afterwards.
            spawned: start what `quick_spawn` makes of it.
            npus: the real ones of the job, which its processes are bound to.
        """
        told = {"do": "start", "job": job, "rank": rank, "key": key, "keep": keep, "spawned": spawned}
        told["npus"] = list(npus)
        self.channel.send(told, fds)

    def receive(self) -> Message | None:
        """The zygote's next message; waits for it. None if the zygote is gone."""
        received = self._receive()
        return None if received is None else received[0]

    def _receive(self) -> tuple[Message, list[int]] | None:
        received = self.channel.receive()
        if received is None:
            self._lost = True
            return None
        message, _ = received
        if message["is"] == "started":
            self._groups.append(message["pid"])
        elif message["is"] == "exited":
            self.statuses[message["job"], message["rank"]] = message["status"]
        elif message["is"] == "ended":
            self.statuses = {key: status for key, status in self.statuses.items() if key[0] != message["job"]}
        return received

    def end_job(self, job: int, on_message: Callable[[Message], None]) -> None:
        """Ends every process that descends from the job's ranks, and returns when none is left.

        Args:
            on_message: gets what the zygote says meanwhile.

        Raises:
            ZygoteError: processes are left that even SIGKILL does not end. The zygote is of no use then.
        """
        self.channel.send({"do": "end", "job": job})
        deadline = time.monotonic() + _TIME_TO_END
        while True:
            if not readable([self.channel], deadline - time.monotonic()):
                self.give_up()
                raise ZygoteError(f"ranks of the test were still there {_TIME_TO_END:g} s after they were killed")
            message = self.receive()
            if message is None:
                self._end_orphans()
                return
            if message["job"] != job:
                continue
            if message["is"] == "ended":
                self._groups.clear()
                return
            on_message(message)

    def _end_orphans(self) -> None:
        """Ends what a zygote left behind that was killed: the kernel ends its ranks, but not their children."""
        if self._groups:
            time.sleep(_TIME_FOR_ORPHANS)
        for group in self._groups:
            try:
                os.killpg(group, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._groups.clear()

    def describe_end(self, *, with_log: bool = False) -> str:
        """How the zygote ended; to be asked only when it is gone."""
        if self._process is None:
            return "the process that starts ranks for all workers of this run ended"
        return self._process.describe_end() + (f"\n{self._process.log()}" if with_log else "")

    def give_up(self) -> None:
        """Has no more to do with the zygote, which ends the ranks of this process and what they have started."""
        self._lost = True
        if self._process is None:
            self.channel.close()
            return
        self._process.end()
        self._end_orphans()

    def close(self) -> None:
        """Ends this process's use of the zygote, and with it whatever is left of its ranks."""
        if self._process is None:
            self.channel.close()
            return
        self._process.close()
        self._end_orphans()
