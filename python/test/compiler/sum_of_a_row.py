"""One small kernel, run by test_gdb.py under gdb."""

# Arguments of kernels have no Python types, and torch gets its `npu` when it is imported.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def sum_of_a_row(row, out, N: tl.constexpr):
    values = tl.load(row + tl.arange(0, N))
    total = tl.sum(values)
    tl.store(out, total)  # BREAK


if __name__ == "__main__":
    result = torch.zeros(1).npu()
    sum_of_a_row[(2,)](torch.arange(16.0).npu(), result, 16)
    print(f"the sum is {result.item():.0f}")
