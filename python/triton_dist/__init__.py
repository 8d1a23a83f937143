"""Triton kernels that talk to each other across Ascend NPUs, real or simulated.

PYTEST_DONT_REWRITE: it is imported when an interpreter starts, so that pytest would warn that it comes too late.
"""

TYPE_CHECKING = False  # importing `typing` would cost every Python program of the user
if TYPE_CHECKING:
    from triton_dist.runtime.deadlock import DeadlockError as DeadlockError

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name == "DeadlockError":
        from triton_dist.runtime.deadlock import DeadlockError

        return DeadlockError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
