"""Keeps an NPU out after a hang, and after a holder that was killed, until it is fit for the next test."""

from __future__ import annotations

import time
from collections.abc import Collection

from triton_dist.testing.leases.holdings import Holding, Holdings
from triton_dist.testing.leases.inventory import Inventory
from triton_dist.testing.leases.line import sole_checker

# Seconds between two questions to npu-smi.
_LOOK = 2.0


class Quarantine:
    """The NPUs of an inventory that nobody holds and nobody may have."""

    def __init__(self, inventory: Inventory, holdings: Holdings) -> None:
        self._inventory = inventory
        self._holdings = holdings
        self._looked = -_LOOK

    def inmates(self, free: Collection[int]) -> dict[int, str]:
        """Those of the NPUs `free`, which nobody holds, that are not fit, and why.

        To be asked by who has the line to himself: nobody takes an NPU meanwhile.
        """
        if not self._inventory.may_be_unfit:
            return {}
        return {
            number: why_unfit(holding)
            for number, holding in self._holdings.read(free).items()
            if holding.state != "released"
        }

    def look_after(self, inmates: Collection[int]) -> None:
        """Lets those out that are fit by now. Does nothing if that was asked a moment ago, or another process asks.

        Raises:
            LeaseError: the lease directory cannot be used.
        """
        if time.monotonic() - self._looked < _LOOK:
            return
        with sole_checker(self._holdings.directory) as alone:
            if alone:
                self._holdings.judge(self._inventory.troubles(sorted(inmates)))
        self._looked = time.monotonic()


def why_unfit(holding: Holding) -> str:
    """Why an NPU that nobody holds may not be had."""
    party = holding.party
    if holding.state == "suspect":
        return holding.reason
    return f"its last holder, {party.test or 'a test'} of pytest {party.pid}, was killed"
