"""Makes the simulated NPUs available to unchanged user code."""


def autoload() -> None:
    """Entry point of `torch.backends`; never raises."""
