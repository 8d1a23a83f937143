"""The steps of the self-test, from the NPUs that there are to ranks that talk to each other."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from triton_dist import env
from triton_dist.commands.selftest import programs
from triton_dist.commands.selftest.patience import patiently
from triton_dist.commands.selftest.ranks import Ranks
from triton_dist.commands.selftest.step import Done, Step, StepFailedError, StepSkippedError
from triton_dist.compiler import scratch
from triton_dist.compiler.errors import KernelCompileError
from triton_dist.compiler.npu import tools
from triton_dist.devices.survey import UNKNOWN, Survey
from triton_dist.testing.choice import Choice, Wish, choose
from triton_dist.testing.leases.errors import LeaseError

_KERNELS = Path(__file__).with_name("kernels.py")
_RANKS = 2
WORKERS = "triton_dist.commands.selftest.workers"
_ASK_FOR_NAME = "import torch; print(torch.npu.get_device_name(0))"


@dataclass
class SelfTest:
    """What the steps share.

    Attributes:
        wish: the NPUs that are asked for.
        allow_busy: whether NPUs that other programs are on may be used.
        timeout: how long anything that a step waits for may take, in seconds.
        while_waiting: called now and then.
        ranks: where steps have their ranks run.
        choice: the NPUs that are used, once the first step has found them.
        before: what variables held that it has changed for these.
    """

    wish: Wish
    allow_busy: bool
    timeout: float
    while_waiting: Callable[[], None]
    ranks: Ranks
    choice: Choice | None = None
    before: dict[str, str | None] = field(default_factory=dict)

    @property
    def npus(self) -> Choice:
        """The NPUs that are used."""
        assert self.choice is not None, "a step that uses NPUs needs the one that finds them"
        return self.choice

    def run(self, *arguments: str, **variables: object) -> programs.Ended:
        """Runs Python with these arguments."""
        environ = env.child_environ(**variables)
        return programs.run([sys.executable, *arguments], environ, self.timeout, self.while_waiting)


def _devices(test: SelfTest) -> Done:
    try:
        choice = patiently(lambda: choose(test.wish, allow_busy=test.allow_busy), test.while_waiting)
    except (LeaseError, ValueError) as error:
        raise StepFailedError(str(error), "python -m triton_dist npus, and npu-smi info, as this user") from error
    details = {"remarks": "\n".join(choice.remarks)} if choice.remarks else {}
    if not choice.inventory.npus:
        why = f"no NPU can be used: {'; '.join(choice.remarks) or 'none was found'}"
        raise StepFailedError(why, choice.inventory.how_to_get_more, details)
    test.choice = choice
    # For this process and all that it starts, as the pytest plugin does it.
    environ = env.child_environ()
    test.before = {name: environ.get(name) for name in choice.environ}
    env.apply(choice.environ)
    return Done(f"{choice.inventory.description}{_remarked(choice)}", details)


def _remarked(choice: Choice) -> str:
    count = len(choice.remarks)
    return f"; {count} {'remark' if count == 1 else 'remarks'} in the report" if count else ""


def _doctor(test: SelfTest) -> Done:
    ended = test.run("-m", "triton_dist", "doctor", "--quick", "--json", "--ranks", str(_RANKS))
    by_hand = "python -m triton_dist doctor"
    try:
        findings: list[dict[str, Any]] = json.loads(ended.stdout)["findings"]
    except ValueError:
        raise _unfinished("the doctor", ended, by_hand, test.timeout) from None
    lines = [f"{each['level']:4}  {each['what']}" for each in findings]
    for position, each in enumerate(findings):
        if each["mend"]:
            lines[position] += f"\n      {each['why']}\n      mend: {each['mend']}"
    details = {"findings": "\n".join(lines)}
    must = [each for each in findings if each["level"] == "FAIL"]
    if must:
        more = f" (and {len(must) - 1} more)" if len(must) > 1 else ""
        raise StepFailedError(f"{must[0]['what']}{more}", must[0]["mend"], details)
    warnings = sum(each["level"] == "warn" for each in findings)
    said = f"{warnings} {'warning' if warnings == 1 else 'warnings'}" if warnings else "nothing is wrong"
    return Done(f"{len(findings)} looked at, {said}", details)


def _compile(test: SelfTest) -> Done:
    simulated = test.npus.inventory.kind == "sim"
    if simulated and shutil.which(tools.COMPILER) is None and tools.wheel_directory() is None:
        raise StepSkippedError("no NPU compiler, which simulated NPUs do not need: pip install 'triton-dist[compile]'")
    soc = _soc(test, simulated=simulated)
    command = ("-m", "triton_dist", "compile", str(_KERNELS), "--target", soc)
    by_hand = f"python {' '.join(command)}"
    with scratch.directory() as directory:
        # Into a file: what is imported on the way may print whatever it likes.
        file = directory / "rows.json"
        ended = test.run(*command, "--json", str(file))
        try:
            rows: list[dict[str, Any]] = json.loads(file.read_text())
        except (OSError, ValueError):
            raise _unfinished(f"the compiler for {soc}", ended, by_hand, test.timeout) from None
    details = {"rows": json.dumps(rows, indent=1)}
    bad = [row for row in rows if row["state"] != "ok"]
    if bad:
        first = bad[0]["message"].splitlines()[0]
        raise StepFailedError(f"{bad[0]['kernel']} for {soc} is {bad[0]['state']}: {first}", by_hand, details)
    reached = "with its last step" if all(row["linked"] for row in rows) else "up to hivmc, which only CANN has"
    return Done(f"{len(rows)} kernels for {soc}, {reached}", details)


def _soc(test: SelfTest, *, simulated: bool) -> str:
    """Name of the SoC, as the compiler knows it."""
    if simulated:
        return env.TRITON_DIST_SIM_SOC.get()
    try:
        known = tools.targets()
    except KernelCompileError as error:
        raise StepFailedError(str(error), "python -m triton_dist doctor") from error
    found = Survey.from_plain(test.npus.plain["survey"])
    names = [npu.soc for npu in found.npus if npu.physical in test.npus.inventory.npus and npu.soc != UNKNOWN]
    named = env.TRITON_ASCEND_ARCH.get()
    for name in ([named] if named else []) + names:
        if name in known:
            return name
    # npu-smi has one name for all SoCs of a family; CANN knows better, and takes its time.
    ended = test.run("-c", _ASK_FOR_NAME)
    told = ended.stdout.split()[-1] if ended.status == 0 and ended.stdout.split() else ""
    if told in known:
        return told
    raise StepFailedError(
        f"{tools.compiler()} knows no SoC that is called {named or ', '.join(sorted(set(names))) or UNKNOWN}",
        "set TRITON_ASCEND_ARCH to what CANN calls the SoC, such as Ascend910_9392",
        {"what CANN was asked": f"{ended.stdout}{ended.stderr}"},
    )


def _unfinished(who: str, ended: programs.Ended, by_hand: str, timeout: float) -> StepFailedError:
    details = {"stdout": ended.stdout, "stderr": ended.stderr, "processes that were there": "\n".join(ended.hung)}
    details = {title: text for title, text in details.items() if text.strip()}
    if ended.status is None:
        return StepFailedError(f"time-out: {who} had not ended after {timeout:g} s, and was ended", by_hand, details)
    lines = (ended.stderr or ended.stdout).strip().splitlines()
    said = lines[-1] if lines else "it printed nothing"
    return StepFailedError(f"{who} gave no result (exit status {ended.status}): {said}", by_hand, details)


def _launch(test: SelfTest) -> Done:
    # Without a collective, so that what fails here is the kernel's way to the NPU.
    details = test.ranks.run(f"{WORKERS}:launch", 1, "gloo", test.npus)
    return Done("a kernel on one NPU gave what torch gives", details)


def _meet(test: SelfTest) -> Done:
    details = test.ranks.run(f"{WORKERS}:meet", _RANKS, "hccl", test.npus)
    return Done(f"{_RANKS} ranks have a process group, and tensors on the symmetric heap", details)


def _notify(test: SelfTest) -> Done:
    details = test.ranks.run(f"{WORKERS}:notify_and_wait", _RANKS, "hccl", test.npus)
    return Done("each rank got the other's signal, and the data before it", details)


def _put(test: SelfTest) -> Done:
    details = test.ranks.run(f"{WORKERS}:put", _RANKS, "hccl", test.npus)
    return Done("each rank got what the other put", details)


STEPS: tuple[Step[SelfTest], ...] = (
    Step("devices", "the NPUs that can be used", _devices),
    Step("doctor", "this host and this environment", _doctor),
    Step("compile", "distributed kernels for the SoC", _compile, ("devices",)),
    Step("launch", "one kernel on one NPU", _launch, ("devices", "compile")),
    Step("ranks", "two ranks: process group and symmetric heap", _meet, ("devices",)),
    Step("notify-wait", "data and a signal between two ranks", _notify, ("launch", "ranks")),
    Step("put", "a put between two ranks", _put, ("launch", "ranks")),
)
