"""Stands in for torch_npu on simulated NPUs: `import torch_npu` makes the device `npu` exist.

Operators of torch_npu's own are not given, except those that change nothing here: a simulated NPU keeps every tensor in
the plain ND format.
"""

from __future__ import annotations

from typing import NoReturn

# This and the function stand before the import of torch, which looks for them while it is being imported.
simulated = True


def _autoload() -> None:
    """What an installed torch_npu names as its entry point of `torch.backends`; importing this module does it."""


import torch  # noqa: E402

from triton_dist.runtime import torch_device  # noqa: E402

torch_device.ensure()

npu = torch.npu  # type: ignore[attr-defined]
__version__ = f"{torch.__version__.split('+')[0]}+simulated"

_ND = 2


def npu_format_cast(tensor: torch.Tensor, acl_format: int, customize_dtype: int | None = None) -> torch.Tensor:
    """The tensor itself: values do not depend on the format, and there is one format only."""
    return tensor


def get_npu_format(tensor: torch.Tensor) -> int:
    """ND, whatever the tensor is."""
    return _ND


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"torch_npu.{name} is not there on simulated NPUs (torch_npu on hardware may have it)")
