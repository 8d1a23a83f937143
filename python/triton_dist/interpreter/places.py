"""Which line of a kernel a program is at."""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType

import numpy
import triton

import triton_dist

# Code of these is not the kernel's, though it runs in it.
_FOREIGN = tuple(
    str(Path(module.__file__).parent) + "/"  # type: ignore[arg-type]
    for module in (triton, triton_dist, numpy, os)
)
_KERNELS = str(Path(triton_dist.__file__).parent / "language" / "extra" / "ascend") + "/"


@dataclass(frozen=True)
class Place:
    """A line of source.

    Attributes:
        file: path.
        line: number, from 1.
    """

    file: str
    line: int

    @property
    def text(self) -> str:
        """The line's source, without indentation; empty if it cannot be read."""
        return linecache.getline(self.file, self.line).strip()


def of_frame(frame: FrameType | None) -> Place | None:
    """The innermost line of a kernel among `frame` and its callers."""
    while frame is not None:
        if _is_kernel(frame):
            return Place(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


def of_traceback(traceback: TracebackType | None) -> Place | None:
    """The innermost line of a kernel that an exception has passed."""
    lines = [Place(tb.tb_frame.f_code.co_filename, tb.tb_lineno) for tb in _links(traceback) if _is_kernel(tb.tb_frame)]
    return lines[-1] if lines else None


def _links(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_kernel(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return file.startswith(_KERNELS) or not (file.startswith(_FOREIGN) or file.startswith("<"))
