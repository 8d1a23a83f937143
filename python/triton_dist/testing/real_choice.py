"""Which of the host's real NPUs a run's tests share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from triton_dist import env
from triton_dist.devices import nodes
from triton_dist.devices.survey import Npu, Survey, survey
from triton_dist.devices.visible import as_text
from triton_dist.testing.choice import Choice, Wish
from triton_dist.testing.leases.directory import LeaseDirectory
from triton_dist.testing.leases.holdings import Holdings
from triton_dist.testing.leases.real_npus import RealNpus


def choose_real(wish: Wish, *, allow_busy: bool) -> Choice:
    """Those of the host's NPUs that `wish` asks for and that are fit.

    Raises:
        ValueError: there are not such ones, or an environment variable holds what it may not.
        LeaseError: the lease directory cannot be used.
    """
    # Before and after, since what is on an NPU shows for a moment longer than its lease lasts.
    leased = _leased(nodes.physical_ids())
    found = survey()
    return _of_survey(wish, found, leased | _leased(nodes.physical_ids()), allow_busy=allow_busy)


def real_from_plain(plain: Mapping[str, Any]) -> Choice:
    """The choice that another process has made."""
    found = Survey.from_plain(plain["survey"])
    return Choice(RealNpus(found, plain["npus"], busy=plain["busy"]), {}, (), plain)


def _of_survey(wish: Wish, found: Survey, leased: frozenset[int], *, allow_busy: bool) -> Choice:
    if wish.numbers is not None and (missing := sorted(wish.numbers - {npu.physical for npu in found.npus})):
        there = as_text([npu.physical for npu in found.npus]) or "none"
        raise ValueError(f"--npus={wish.text}: NPU {as_text(missing)} is not here; this process sees {there}")
    asked = [npu for npu in found.npus if wish.numbers is None or npu.physical in wish.numbers]
    remarks = list(found.notes)
    usable = []
    for npu in asked:
        why = _why_skipped(npu, leased=npu.physical in leased, allow_busy=allow_busy)
        if why is None:
            usable.append(npu.physical)
        else:
            remarks.append(f"NPU {npu.physical} is skipped: {why}")
    if wish.count is not None and wish.count > len(usable):
        reasons = "; ".join(remarks) or "there are no others"
        raise ValueError(f"--npus={wish.count}: {len(usable)} NPUs can be used ({reasons})")
    chosen = usable if wish.count is None else list(found.links.best_group(usable, wish.count))
    inventory = RealNpus(found, chosen, busy=allow_busy)
    if not found.npus:
        remarks.append(f"no NPU found: TRITON_DIST_BACKEND={env.TRITON_DIST_BACKEND.get()} forbids simulated ones")
    environ: dict[str, object] = {}
    if len(chosen) < len(found.npus) and chosen:
        environ |= inventory.environ(tuple(chosen))
    plain = {"kind": "npu", "npus": chosen, "survey": found.to_plain(), "busy": allow_busy}
    return Choice(inventory, environ, tuple(remarks), plain)


def _leased(numbers: Sequence[int]) -> frozenset[int]:
    """Those that some test of this host holds now: what is busy on them is no stranger."""
    return frozenset(numbers) - Holdings(LeaseDirectory.of_this_host(), RealNpus.kind).free(numbers)


def _why_skipped(npu: Npu, *, leased: bool, allow_busy: bool) -> str | None:
    """Why tests do not get `npu`; None if they may."""
    if npu.defect is not None:
        return npu.defect
    if npu.busy is not None and not leased and not allow_busy:
        return f"busy with {npu.busy} (--allow-busy-npus takes it all the same)"
    return None
