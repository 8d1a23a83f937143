"""Puts the simulated NPUs into Triton, in this process only and without touching an installed file."""

from __future__ import annotations

from triton_dist import env


def activate() -> None:
    """Make simulated NPUs Triton's active driver and compiler. Calling it again changes nothing.

    Called right after `import triton`, when the backend is `sim` (see triton_dist.activation).
    """
    from triton.backends import Backend, backends
    from triton.runtime.driver import driver

    from triton_dist.compiler import autotune, option_checks, overrides, source_files
    from triton_dist.compiler.backend import SimulatedNPUBackend
    from triton_dist.runtime.driver import SimulatedNPUDriver

    if backends["ascend"].compiler is SimulatedNPUBackend:
        return
    # Line information costs nothing here, and reports of errors and waits live on it.
    if not env.TRITON_DISABLE_LINE_INFO.is_set():
        env.apply({env.TRITON_DISABLE_LINE_INFO.name: "false"})
    backends["ascend"] = Backend(SimulatedNPUBackend, SimulatedNPUDriver)
    driver.set_active(SimulatedNPUDriver())
    option_checks.install()
    overrides.install()
    source_files.install()
    autotune.install()
