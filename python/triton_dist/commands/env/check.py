"""Looks for what is wrong with the variables that are set."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from triton_dist import env
from triton_dist.commands import terminal
from triton_dist.commands.env import contradictions, near
from triton_dist.commands.env.findings import Finding
from triton_dist.runtime import backend as backends
from triton_dist.runtime import soc


@dataclass(frozen=True)
class Situation:
    """What the variables are checked for.

    Attributes:
        backend: `sim` or `ascend`.
        initialisation: `env.UNIQUE_ID`, `env.IP_PORT`, or None where it is not known.
        ip_port: the one that the program initialises with, or None where it is not known.
        names: all names in the environment.
    """

    backend: str
    initialisation: str | None
    ip_port: str | None
    names: tuple[str, ...]

    @classmethod
    def of_this_process(cls, backend: str | None, initialisation: str | None, ip_port: str | None) -> Situation:
        """This process's environment; a `backend` of None is the active one."""
        if backend is None:
            try:
                backend = backends.active()
            except env.EnvironmentVariableError:
                # It is found as a bad value. Until it is mended, kernels run nowhere.
                backend = "sim"
        return cls(backend, initialisation, ip_port, tuple(env.child_environ()))


def run(situation: Situation, *, as_json: bool, allow_hints: bool) -> int:
    """Prints what is found. Gives 1 where something is; with `allow_hints`, where an error is."""
    findings = find(situation)
    if as_json:
        document = {
            "backend": situation.backend,
            "initialisation": situation.initialisation,
            "findings": [asdict(each) for each in findings],
        }
        print(json.dumps(document, indent=2))
    else:
        paint = terminal.paint if sys.stdout.isatty() else terminal.plain
        for each in findings:
            print(f"{paint('red' if each.is_error else 'yellow', f'{each.severity:5}')}  {each.message}")
        count = sum(variable.is_set() for variable in env.REGISTRY.values())
        known = "1 variable" if count == 1 else f"{count} variables"
        print(f"checked {known} for {_NAMES[situation.backend]}: {len(findings) or 'nothing'} found")
    return int(any(each.is_error or not allow_hints for each in findings))


def find(situation: Situation) -> list[Finding]:
    """Everything that is wrong, errors first."""
    rules: tuple[Callable[[Situation], Iterator[Finding]], ...] = (
        _bad_values,
        _typos,
        _contradictions,
        _without_effect,
    )
    findings = [finding for rule in rules for finding in rule(situation)]
    return sorted(findings, key=lambda finding: not finding.is_error)


_NAMES = {"sim": "simulated NPUs", "ascend": "Ascend NPUs"}

# Nobody should be led to the old spelling.
_NAMES_TO_USE = [name for name in env.REGISTRY if name != env.SHMEM_UID_SOCK_IFNAM.name]

# The families of names that the variables here belong to. A name of another family is none of our business.
_FAMILIES = (
    *("TRITON_", "SHMEM_", "HCCL_", "ASCEND_", "MLIR_", "LLVM_"),
    *("TORCH_DEVICE_", "GLOO_", "USE_IR_", "DISABLE_LLVM_", "ENABLE_PRINT_", "REL_WITH_"),
)


def _bad_values(situation: Situation) -> Iterator[Finding]:
    for variable in env.REGISTRY.values():
        try:
            variable.get()
        except env.EnvironmentVariableError as refusal:
            yield Finding("error", "bad value", (variable.name,), str(refusal))
    if situation.backend != "sim":
        return
    for variable in (env.TRITON_DIST_SIM_SOC, env.TRITON_ASCEND_ARCH):
        if variable.is_set():
            try:
                soc.lookup(variable.text())
            except ValueError as refusal:
                yield Finding("error", "bad value", (variable.name,), f"{variable.name}: {refusal}")


def _typos(situation: Situation) -> Iterator[Finding]:
    for name in sorted(situation.names):
        if not name.startswith(_FAMILIES) or name in env.REGISTRY:
            continue
        meant = near.likely_meant(name, _NAMES_TO_USE)
        if meant is not None:
            yield Finding(
                "hint", "typo", (name,), f"{name} is not a variable that is known here: did you mean {meant}?"
            )


def _contradictions(situation: Situation) -> Iterator[Finding]:
    return contradictions.find(situation.ip_port)


def _without_effect(situation: Situation) -> Iterator[Finding]:
    here = (env.BOTH, env.SIMULATED if situation.backend == "sim" else env.HARDWARE)
    reasons: dict[str, list[str]] = {}
    for variable in env.REGISTRY.values():
        if not variable.is_set():
            continue
        if variable.category == env.BUILD:
            if variable.acts_on == env.NOTHING:
                reasons.setdefault(f"no counterpart here: {variable.note}", []).append(variable.name)
        elif variable.acts_on not in here:
            # A note of what acts on simulated NPUs alone says nothing of hardware.
            why = f": {variable.note}" if variable.acts_on != env.SIMULATED else ""
            reasons.setdefault(f"no effect on {_NAMES[situation.backend]}{why}", []).append(variable.name)
        elif variable.initialisation and situation.initialisation not in (None, variable.initialisation):
            reasons.setdefault(f"no effect where {_INITIALISED[variable.initialisation]}", []).append(variable.name)
    for reason, names in reasons.items():
        yield Finding("hint", "no effect", tuple(names), f"{', '.join(names)}: {reason}")


_INITIALISED = {
    env.UNIQUE_ID: "the program initialises with an ip_port, not by unique id",
    env.IP_PORT: "the program initialises by unique id, not with an ip_port",
}
