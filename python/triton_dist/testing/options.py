"""What users can set: command line, ini-file, marker arguments."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import pytest

from triton_dist import env
from triton_dist.testing.choice import Choice, Wish, choose, from_plain
from triton_dist.testing.leases.inventory import Inventory
from triton_dist.testing.nodes.hosts import DEFAULT_LAUNCH, Host, parse_hosts

MARKER = (
    "dist(world_size=2, nodes=1, timeout=SECONDS, fresh=False): a test whose ranks run at once, one on each of its "
    "NPUs; nodes=2: as many on each of two hosts; fresh=True: in processes that no other test has had"
)
# Where a worker of pytest-xdist finds what its controller has chosen.
WORKER_INPUT = "triton_dist_npus"
_CHOICE: pytest.StashKey[Choice] = pytest.StashKey()
_DEFAULT_WORLD_SIZE = 2
_DEFAULT_TIMEOUT = "60"


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("triton-dist", "multi-rank tests on NPUs (triton-dist)")
    group.addoption(
        "--npus",
        metavar="NPUS",
        default="auto",
        help="the NPUs that tests share: auto (all that the host has; simulated ones where there are none), COUNT of "
        "these, a LIST such as 0,2,5-7 of the numbers that `python -m triton_dist npus` shows, or sim:COUNT simulated "
        "ones. Default: auto. How many are simulated by default: TRITON_DIST_SIM_NPUS, else 8.",
    )
    group.addoption(
        "--allow-busy-npus",
        action="store_true",
        help="use NPUs that other programs are on, too. Default: they are skipped.",
    )
    group.addoption(
        "--dist-timeout",
        metavar="SECONDS",
        default=None,
        help="how long the ranks of a test may take, counted from when it has its NPUs; then they are ended, and "
        "their stacks and what they waited for are shown. A marker dist(timeout=SECONDS) wins. "
        f"Default: dist_timeout of the ini-file, else {_DEFAULT_TIMEOUT}.",
    )
    group.addoption(
        "--sim-strict",
        action="store_true",
        default=False,
        help="simulated NPUs make late, in random order, what the rules allow to be late: stores before a signal, "
        "copies with nbi before a quiet, programs and launches; fresh symmetric memory is poisoned. "
        "The same as TRITON_DIST_SIM_STRICT=1. Default: off.",
    )
    group.addoption(
        "--sim-seed",
        metavar="SEED",
        type=int,
        default=None,
        help="seed of the choices that simulated NPUs are free to make, to replay a run in the strict mode. "
        "Default: TRITON_DIST_SIM_SEED, else a new one, which is shown.",
    )
    group.addoption(
        "--sim-cores",
        metavar="AIC,AIV",
        default=None,
        help="how many cube and vector cores a simulated NPU has, such as 20,40. "
        "The same as TRITON_DIST_SIM_AIC and TRITON_DIST_SIM_AIV. Default: those of the SoC.",
    )
    group.addoption(
        "--no-warm-ranks",
        action="store_true",
        help="start the processes of each test's ranks anew, instead of keeping them for the next test that fits. "
        "Default: they are kept.",
    )
    group.addoption(
        "--pdb-rank",
        metavar="RANK",
        type=int,
        default=0,
        help="with --pdb: the rank in which the debugger opens when it fails in a multi-rank test. Default: 0.",
    )
    group.addoption(
        "--dist-artifacts",
        metavar="DIR",
        default=None,
        help="a directory for all that is known of failed multi-rank tests: output and stacks of every rank, in full; "
        "on real NPUs also what npu-smi and CANN's logs say. Default: nothing is kept.",
    )
    group.addoption(
        "--dist-hosts",
        metavar="HOSTS",
        default=None,
        help="the hosts of tests on several nodes, with commas between: HOST, or HOST=ADDRESS where the others reach "
        "it by another name. A test on fewer nodes has the first ones. Default: network namespaces of this machine.",
    )
    group.addoption(
        "--dist-launch",
        metavar="COMMAND",
        default=DEFAULT_LAUNCH,
        help="the command that runs another on a host of --dist-hosts; {host} and {command} stand for these. No shell "
        f"reads it. Default: {DEFAULT_LAUNCH}",
    )
    parser.addini(
        "dist_timeout", "default of --dist-timeout: seconds that the ranks of a test may take", default=_DEFAULT_TIMEOUT
    )


def npus(config: pytest.Config) -> Choice:
    """The NPUs that tests share, looked for at the first call; a worker of pytest-xdist has those of its controller.

    Raises:
        ValueError: --npus holds what it may not, or wants what the host does not have.
        LeaseError: the lease directory cannot be used.
    """
    if _CHOICE not in config.stash:
        given = getattr(config, "workerinput", {}).get(WORKER_INPUT)
        if given is not None:
            config.stash[_CHOICE] = from_plain(given)
        else:
            wish = Wish.of(config.getoption("--npus"))
            config.stash[_CHOICE] = choose(wish, allow_busy=config.getoption("--allow-busy-npus"))
    return config.stash[_CHOICE]


def inventory(config: pytest.Config) -> Inventory:
    """The NPUs that tests share."""
    return npus(config).inventory


def hosts(config: pytest.Config) -> list[Host]:
    """The hosts of tests on several nodes; none if the user has named none.

    Raises:
        ValueError: --dist-hosts or --dist-launch holds what it may not.
    """
    text = config.getoption("--dist-hosts")
    return [] if text is None else parse_hosts(text, config.getoption("--dist-launch"))


def is_strict(config: pytest.Config) -> bool:
    """Whether simulated NPUs are strict in this run."""
    return bool(config.getoption("--sim-strict")) or env.TRITON_DIST_SIM_STRICT.get()


def sim_cores(config: pytest.Config) -> tuple[int, int] | None:
    """Cube and vector cores of a simulated NPU, where --sim-cores says so.

    Raises:
        ValueError: it is not two numbers of 1 or more.
    """
    given: str | None = config.getoption("--sim-cores")
    if given is None:
        return None
    numbers = [int(text) if text.isdecimal() else 0 for text in given.split(",")]
    if len(numbers) != 2 or min(numbers) < 1:
        raise ValueError(f"--sim-cores={given} is not allowed: it takes AIC,AIV, two integers of 1 or more")
    return numbers[0], numbers[1]


def choose_seed(config: pytest.Config) -> int | None:
    """The seed of the run: as asked for, or in the strict mode a new one, the same in all workers of pytest-xdist.

    Raises:
        ValueError: --sim-seed is negative.
    """
    seed: int | None = config.getoption("--sim-seed")
    if seed is not None and seed < 0:
        raise ValueError(f"--sim-seed={seed} is not allowed: it takes an integer of 0 or more")
    if seed is None:
        seed = env.TRITON_DIST_SIM_SEED.get()
    if seed is None and is_strict(config):
        seed = secrets.randbelow(100_000)
    config.option.sim_seed = seed  # what workers are told
    return seed


def check_debugged_rank(config: pytest.Config) -> None:
    """
    Raises:
        ValueError: --pdb-rank is negative.
    """
    rank = config.getoption("--pdb-rank")
    if rank < 0:
        raise ValueError(f"--pdb-rank={rank} is not allowed: it takes the number of a rank, 0 or more")


def default_timeout(config: pytest.Config) -> float:
    """Seconds from --dist-timeout or the ini-file.

    Raises:
        ValueError: it is not a number of seconds greater than 0.
    """
    option = config.getoption("--dist-timeout")
    if option is not None:
        return _seconds(option, "--dist-timeout")
    return _seconds(config.getini("dist_timeout"), "dist_timeout of the ini-file")


def _seconds(value: object, name: str) -> float:
    try:
        seconds = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ValueError(f"{name} is {value!r}: it takes a number of seconds greater than 0")
    return seconds


@dataclass(frozen=True)
class MarkerArguments:
    """The arguments of a test's `dist` marker.

    Attributes:
        world_size: how many ranks the test has if it does not say so when it starts them.
        nodes: on how many nodes, likewise.
        timeout: how long they may take, in seconds.
        chose_timeout: whether the marker says so.
        fresh: whether the test wants processes that no other test has had.
    """

    world_size: int
    nodes: int
    timeout: float
    chose_timeout: bool
    fresh: bool

    @classmethod
    def of(cls, item: pytest.Item) -> MarkerArguments:
        """Those of `item`, defaults where its marker has none.

        Raises:
            ValueError: the marker has arguments that it may not have.
        """
        marker = item.get_closest_marker("dist")
        given = dict(marker.kwargs) if marker else {}
        world_size = checked_count("world_size", given.pop("world_size", _DEFAULT_WORLD_SIZE))
        nodes = checked_count("nodes", given.pop("nodes", 1))
        chose_timeout = given.pop("timeout", None) is not None
        fresh = given.pop("fresh", False)
        if given or (marker and marker.args):
            unknown = [*map(repr, marker.args if marker else ()), *given]
            raise ValueError(
                f"marker dist does not know {', '.join(unknown)}: it takes world_size=COUNT, nodes=COUNT, "
                "timeout=SECONDS and fresh=True"
            )
        return cls(world_size, nodes, timeout_of(item), chose_timeout, bool(fresh))


def timeout_of(item: pytest.Item) -> float:
    """How long the ranks of `item` may take, in seconds; its marker may have other arguments of any kind.

    Raises:
        ValueError: it is not a number of seconds greater than 0.
    """
    marker = item.get_closest_marker("dist")
    timeout = marker.kwargs.get("timeout") if marker else None
    return default_timeout(item.config) if timeout is None else _seconds(timeout, "timeout of marker dist")


def checked_count(name: str, value: object) -> int:
    """`value`, if it can be a number of ranks or nodes, which is called `name`.

    Raises:
        ValueError: it cannot.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} is {value!r}: it takes an integer of 1 or more")
    return value
