"""Entry point of the pytest plugin: its hooks and its fixture.

What serves multi-rank tests alone is imported when there is one, so that other suites do not pay for it.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Generator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from triton_dist import env
from triton_dist.testing import options, usage
from triton_dist.testing.leases.errors import LeaseError
from triton_dist.testing.scheduling.demand import is_for_several_nodes, npus_wanted
from triton_dist.testing.scheduling.history import History

if TYPE_CHECKING:
    from triton_dist.testing.fixture import DistTest
    from triton_dist.testing.session import DistSession
    from triton_dist.testing.spawned import SpawnedRanks

_RECORDER = pytest.StashKey[usage.UsageRecorder]()
_HISTORY = pytest.StashKey[History]()
_SPAWNED: pytest.StashKey[SpawnedRanks] = pytest.StashKey()
_SESSION: pytest.StashKey[DistSession] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    options.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", options.MARKER)
    try:
        chosen = options.npus(config)
        options.default_timeout(config)
        options.hosts(config)
        options.check_debugged_rank(config)
        seed = options.choose_seed(config)
        cores = options.sim_cores(config)
    except (ValueError, LeaseError) as error:
        raise pytest.UsageError(str(error)) from None
    for name, value in chosen.environ.items():
        # Tests ask torch.npu.device_count() what they may use.
        _set_for_session(config, name, value)
    if options.is_strict(config):
        _set_for_session(config, "TRITON_DIST_SIM_STRICT", True)
    if seed is not None:
        _set_for_session(config, "TRITON_DIST_SIM_SEED", seed)
    if cores is not None:
        _set_for_session(config, "TRITON_DIST_SIM_AIC", cores[0])
        _set_for_session(config, "TRITON_DIST_SIM_AIV", cores[1])
    config.stash[_RECORDER] = usage.UsageRecorder()
    config.pluginmanager.register(config.stash[_RECORDER], "triton-dist-usage")
    if hasattr(config, "workerinput"):
        return
    config.stash[_HISTORY] = History(config)
    if config.getoption("dist", "no") != "no":
        from triton_dist.testing.controller import Controller

        config.pluginmanager.register(Controller(config, config.stash[_HISTORY]), "triton-dist-controller")


def _set_for_session(config: pytest.Config, name: str, value: object) -> None:
    before = env.child_environ().get(name)
    env.apply({name: value})
    config.add_cleanup(lambda: env.apply({name: before}))


def pytest_report_header(config: pytest.Config) -> list[str]:
    chosen = options.npus(config)
    lines = [f"NPUs: {chosen.inventory.description}", *(f"  {remark}" for remark in chosen.remarks)]
    if options.is_strict(config):
        lines.append(f"strict mode: --sim-strict --sim-seed={config.getoption('--sim-seed')}")
    return lines


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Called by pytest-xdist for each of its workers."""
    node.workerinput[options.WORKER_INPUT] = dict(options.npus(node.config).plain)


# Before xdist tells its controller that the collection is finished.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    config = session.config
    _tell_controller(session)
    if config.getoption("collectonly"):
        return
    # Several nodes start ranks of their own.
    items = [item for item in session.items if not is_for_several_nodes(item)]
    ours = any(map(_uses_our_fixture, items))
    if ours or (any(map(npus_wanted, items)) and _session(config).forks_spawned):
        # Its imports go on while other tests run. If it does not start, the test that wants it says so.
        with suppress(RuntimeError):
            _session(config).start_zygote()


def _tell_controller(session: pytest.Session) -> None:
    """In an xdist worker: says which tests want NPUs. Then there will be a zygote for all workers."""
    addresses = getattr(session.config, "workerinput", {})
    if "triton_dist_demand" not in addresses:
        return
    from triton_dist.testing.scheduling.link import tell_demand
    from triton_dist.testing.session import SHARED_ZYGOTE

    if tell_demand(addresses["triton_dist_demand"], session.items):
        session.config.stash[SHARED_ZYGOTE] = addresses["triton_dist_zygote"]


def _uses_our_fixture(item: pytest.Item) -> bool:
    info = getattr(item, "_fixtureinfo", None)
    definitions = info.name2fixturedefs.get("dist_test") if info else None
    return bool(definitions and definitions[-1].func.__module__ == __name__)


@pytest.fixture
def dist_test(request: pytest.FixtureRequest) -> DistTest:
    """Runs `fn(rank, world_size, *args)` on ranks: dist_test(fn, world_size=2, backend="hccl", args=())."""
    from triton_dist.testing.fixture import DistTest

    return DistTest(request.node, _session(request.config))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if not _may_start_ranks_itself(item):
        return (yield)
    from triton_dist.testing.spawned import SpawnedRanks

    item.stash[_SPAWNED] = ranks = SpawnedRanks(item, _session(item.config))
    with ranks.leased():
        return (yield)


def _has_ranks(item: pytest.Item) -> bool:
    return item.get_closest_marker("dist") is not None or "dist_test" in getattr(item, "fixturenames", ())


def _may_start_ranks_itself(item: pytest.Item) -> bool:
    """Whether the test may use torch.multiprocessing, which is imported then, if it is not there already."""
    if not _has_ranks(item):
        return False
    if "torch" in sys.modules:
        return True
    return not _uses_our_fixture(item) and importlib.util.find_spec("torch") is not None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    try:
        return (yield)
    except Exception:
        spawned = item.stash.get(_SPAWNED, None)
        if spawned is not None and (error := spawned.timeout_error()) is not None:
            # What the suite saw was only that its ranks were killed.
            raise error from None
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    try:
        return (yield)
    finally:
        # Before the last report of the test is made, which is to have their use of NPUs.
        if _SPAWNED in item.stash:
            item.stash[_SPAWNED].end()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    usage.attach_uses(item, report)
    if report.failed and options.is_strict(item.config) and _has_ranks(item):
        report.sections.append(("strict mode", f"replay: {_replay(item)}"))
    return report


def _replay(item: pytest.Item) -> str:
    """The command that makes the simulator's choices of this run again."""
    npus = len(options.inventory(item.config).npus)
    seed, cores = item.config.getoption("--sim-seed"), item.config.getoption("--sim-cores")
    and_cores = "" if cores is None else f" --sim-cores={cores}"
    return f'pytest "{item.nodeid}" --npus=sim:{npus} --sim-strict --sim-seed={seed}{and_cores}'


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    totals = config.stash[_RECORDER].totals()
    if totals is None:
        return
    inventory = options.inventory(config)
    terminalreporter.section(f"NPUs: {inventory.description}")
    for line in usage.summary_lines(totals, len(inventory.npus)):
        terminalreporter.write_line(line)


def pytest_sessionfinish(session: pytest.Session) -> None:
    history = session.config.stash.get(_HISTORY, None)
    if history is not None:
        history.learn(session.config.stash[_RECORDER].past())


def pytest_unconfigure(config: pytest.Config) -> None:
    session = config.stash.get(_SESSION, None)
    if session is not None:
        session.close()


def _session(config: pytest.Config) -> DistSession:
    if _SESSION not in config.stash:
        from triton_dist.testing.session import DistSession

        config.stash[_SESSION] = DistSession(config)
    return config.stash[_SESSION]
