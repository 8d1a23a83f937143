"""The NPUs: visible, healthy, free, and of the family that this image is for."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Iterator

from triton_dist import env
from triton_dist.commands.doctor.finding import Finding, fail, ok, warn
from triton_dist.commands.doctor.situation import Situation
from triton_dist.devices.survey import UNKNOWN, Survey, survey
from triton_dist.devices.visible import VisibleDevicesError
from triton_dist.testing.leases import status
from triton_dist.testing.leases.directory import LeaseDirectory
from triton_dist.testing.leases.errors import LeaseError


def look(situation: Situation) -> Iterator[Finding]:
    """What npu-smi and the leases say of each."""
    if not situation.on_npus:
        yield ok(f"simulated NPUs will be used, for jobs of up to {situation.ranks} ranks")
        return
    try:
        found = survey()
    except VisibleDevicesError as error:
        yield fail(str(error), "no NPU can be chosen", "set it to a list of numbers, or unset it")
        return
    for note in found.notes:
        yield warn(note, "what is not known is taken to be in order", "npu-smi info, as this user")
    yield from _family(situation, found)
    yield from _states(situation, found)


def _family(situation: Situation, found: Survey) -> Iterator[Finding]:
    chip = env.TRITON_DIST_IMAGE_CHIP.text()
    patterns = situation.versions["chips"].get(chip, [])
    others = {npu.soc for npu in found.npus if npu.soc != UNKNOWN and not _of_family(npu.soc, patterns)}
    if chip and others:
        fits = [
            other
            for other, of_chip in situation.versions["chips"].items()
            if all(_of_family(soc, of_chip) for soc in others)
        ]
        yield fail(
            f"this image is for {chip}, and the NPUs are {', '.join(sorted(others))}",
            "operators of CANN are missing or wrong, which shows late and as something else",
            f"use the image for {fits[0]}" if fits else "use an image for these NPUs",
        )


def _of_family(soc: str, patterns: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(soc, pattern) for pattern in patterns)


def _states(situation: Situation, found: Survey) -> Iterator[Finding]:
    try:
        rows = [row for row in status.status(found, LeaseDirectory.of_this_host()).rows if row.kind == "npu"]
    except LeaseError:
        return  # the check of the lease directory says so
    if not rows:
        yield fail(
            "no NPU is visible",
            "TRITON_DIST_BACKEND=ascend asks for them",
            "give the container its device nodes (nox -s docker does), or TRITON_DIST_BACKEND=sim",
        )
        return
    for row in rows:
        if row.state in (status.SKIPPED, status.QUARANTINED):
            yield warn(f"NPU {row.npu} is {row.state}: {row.detail}", "tests go on without it", "npu-smi info")
    counts = Counter(row.state for row in rows)
    usable = counts[status.FREE] + counts[status.LEASED]
    text = ", ".join(f"{count} {state}" for state, count in counts.items())
    if usable == 0:
        busy = "; ".join(sorted({row.detail for row in rows if row.state == status.BUSY}))
        yield fail(
            f"none of {len(rows)} NPUs can be had: {text}",
            f"tests would wait{f' for {busy}' if busy else ''}",
            "end what is on them, or let tests use them all the same: --allow-busy-npus",
        )
    else:
        yield ok(f"{len(rows)} NPUs of {', '.join(sorted({row.soc for row in rows}))}: {text}")
