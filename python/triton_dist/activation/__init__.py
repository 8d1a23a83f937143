"""Makes the simulated NPUs available to unchanged user code.

Two roads lead here, and either is enough. `triton_dist_activation.pth` imports triton_dist.activation.finder when an
interpreter starts; and `import torch` calls `autoload`, our entry point of the group `torch.backends`. Both run while
something else is being imported, so nothing heavy may be imported at the top of these modules, and no error may leave
them: `import torch` would fail with it.
"""

from __future__ import annotations


def autoload() -> None:
    """Gives torch the device `npu` when the backend is `sim`. Never raises: a failure is one line on stderr."""
    from triton_dist.activation.report import reported

    with reported("torch has no device npu"):
        from triton_dist.activation import real_packages
        from triton_dist.runtime import backend

        if backend.active() == "sim" and not real_packages.torch_npu_wins():
            from triton_dist.runtime import torch_device

            torch_device.ensure()
