"""Keeps kernels of equal text in different files apart in Triton's cache, so that errors name the right file."""

from __future__ import annotations

import functools
import hashlib
from typing import Any

from triton.compiler.compiler import ASTSource


def install() -> None:
    """Lets Triton's cache, in this process only, key a kernel by its file besides its text.

    Binaries for simulated NPUs name the kernel's file in errors, tables of waits and traces. Triton's own key has the
    text and its line only: two checkouts of one project would show each other's files.
    """
    content_hash = ASTSource.hash

    @functools.wraps(content_hash)
    def hash_with_file(self: Any) -> str:
        file = self.fn.fn.__code__.co_filename
        return hashlib.sha256(f"{content_hash(self)}-{file}".encode()).hexdigest()

    ASTSource.hash = hash_with_file
