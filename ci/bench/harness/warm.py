"""Two-rank tests on ranks that are kept, side by side, against the same tests that start their ranks anew, in turn."""

from __future__ import annotations

import statistics

from ci.bench.harness.suites import NOTIFY_AND_WAIT, SPAWNING_CONFTEST, suite
from ci.bench.row import Context, Row

_TESTS = 40
_WORKERS = 4
# A run of the peer takes minutes, and varies little for that.
_MOST_REPETITIONS = 3


def rows(context: Context) -> list[Row]:
    """One row, in seconds: the whole of pytest."""
    with suite(NOTIFY_AND_WAIT.format(tests=_TESTS)) as ours, suite(NOTIFY_AND_WAIT.format(tests=_TESTS)) as theirs:
        theirs.write("conftest.py", SPAWNING_CONFTEST)
        arguments = ("-q", "--npus=sim:8", "-n", str(_WORKERS))
        # Compiles the kernels, and learns how long the tests take.
        ours.run(*arguments)
        peer, _ = theirs.run("-q", "-p", "no:triton_dist")
        value = statistics.median(ours.run(*arguments)[0] for _ in range(min(context.repetitions, _MOST_REPETITIONS)))
    return [Row("warm", value, "s", "ranks spawned anew for each test", peer, "at least 20x quicker", most=1 / 20)]
