"""pytest's side of its zygote: start it, fork ranks, end them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence

from triton_dist import env
from triton_dist.testing.ranks.wire import Channel, Message, memory_file, read_text, readable

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


class ZygoteClient:
    """A zygote that serves this process. It starts in the background; `wait_until_ready` waits for it.

    Attributes:
        channel: where its messages come in, for those who wait for several things.
    """

    def __init__(self) -> None:
        self.channel, theirs = Channel.pair()
        self._ready = False
        self._groups: list[int] = []
        self._log = memory_file("triton-dist-zygote")
        settings = {
            "channel": theirs.fileno(),
            # The kernel watches the thread that starts the process, and only the main one lasts as long as pytest.
            "parent": os.getpid() if threading.current_thread() is threading.main_thread() else None,
            "path": sys.path,
        }
        # As torchrun does, because ranks share the cores. OpenMP reads it when torch is imported.
        threads = {} if env.OMP_NUM_THREADS.is_set() else {"OMP_NUM_THREADS": "1"}
        options = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        self._process = subprocess.Popen(
            [sys.executable, *options, "-c", _BOOTSTRAP, json.dumps(settings)],
            env=env.child_environ(**threads),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            pass_fds=(theirs.fileno(),),
            # Out of the terminal's reach: Ctrl-C is for pytest to handle.
            start_new_session=True,
        )
        theirs.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def wait_until_ready(self, while_waiting: Callable[[], None] = lambda: None) -> None:
        """Waits until ranks can be forked; `while_waiting` is called now and then and may raise.

        Raises:
            ZygoteError: the process ended, or is not ready after ten minutes.
        """
        deadline = time.monotonic() + _TIME_TO_START
        while not self._ready:
            if readable([self.channel], _LOOK):
                if self.receive() is None:
                    raise ZygoteError(f"{self.describe_end()}\n{self.log()}")
                self._ready = True
            elif time.monotonic() > deadline:
                raise ZygoteError(f"the process that starts ranks was not ready after {_TIME_TO_START:g} s")
            while_waiting()

    def fork(self, rank: int, fds: Sequence[int]) -> None:
        """Asks for rank `rank` with copies of `fds`; {"is": "forked"} or the end of the channel answers."""
        self.channel.send({"do": "fork", "rank": rank}, fds)

    def receive(self) -> Message | None:
        """The zygote's next message; waits for it. None if the zygote is gone."""
        received = self.channel.receive()
        if received is None:
            return None
        message, _ = received
        if message["is"] == "forked":
            self._groups.append(message["pid"])
        return message

    def end_job(self, on_message: Callable[[Message], None]) -> None:
        """Ends every process that descends from the job's ranks, and returns when none is left.

        Args:
            on_message: gets what the zygote says meanwhile.

        Raises:
            ZygoteError: processes are left that even SIGKILL does not end. The zygote is of no use then.
        """
        self.channel.send({"do": "end"})
        deadline = time.monotonic() + _TIME_TO_END
        while True:
            if not readable([self.channel], deadline - time.monotonic()):
                self.kill()
                raise ZygoteError(f"ranks of the test were still there {_TIME_TO_END:g} s after they were killed")
            message = self.receive()
            if message is None:
                self._end_orphans()
                return
            if message["is"] == "ended":
                self._groups.clear()
                return
            on_message(message)

    def _end_orphans(self) -> None:
        """Ends what a zygote left behind that was killed: the kernel ends its ranks, but not their children."""
        self._process.wait()
        if self._groups:
            time.sleep(_TIME_FOR_ORPHANS)
        for group in self._groups:
            try:
                os.killpg(group, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._groups.clear()

    def describe_end(self) -> str:
        """How the zygote ended; to be asked only when it is gone."""
        status = self._process.wait()
        how = f"by {signal.Signals(-status).name}" if status < 0 else f"with exit status {status}"
        return f"the process that starts ranks (pid {self.pid}) ended {how}"

    def log(self) -> str:
        """What the zygote wrote to its standard output and error."""
        return read_text(self._log)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Ends the zygote, and with it whatever is left of its ranks."""
        self.channel.close()
        try:
            self._process.wait(_TIME_TO_LEAVE)
        except subprocess.TimeoutExpired:
            self.kill()
        os.close(self._log)
