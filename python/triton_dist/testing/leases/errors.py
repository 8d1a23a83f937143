"""What leases may fail with."""

from __future__ import annotations


class LeaseError(RuntimeError):
    """No lease can be given, however long the caller waits; the message says why and what to do."""
