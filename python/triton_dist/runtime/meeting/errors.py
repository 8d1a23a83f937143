"""The errors that end a rendezvous."""

from __future__ import annotations

# The end of every message of a time-out.
TIMEOUT_ADVICE = (
    "every process of the job must initialise shmem with this endpoint. "
    "TRITON_DIST_HEAP_TIMEOUT or option_attr.shm_init_timeout sets the time"
)


class RendezvousError(RuntimeError):
    """The ranks of a job could not meet. The text names the ranks, what they said and what to do."""


class RendezvousTimeoutError(RendezvousError, TimeoutError):
    """A rank never came."""
