"""Two kernels on two streams of one NPU: the second works on each tile as soon as the first has made it.

python python/tutorials/streams.py
"""

# mypy: allow-untyped-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

import torch
import triton
import triton.language as tl

TILES = 8
TILE = 64


@triton.jit
def make(tiles, flags, TILES: tl.constexpr, TILE: tl.constexpr):
    lanes = tl.arange(0, TILE)
    for t in range(TILES):
        tl.store(tiles + t * TILE + lanes, lanes + t)
        tl.atomic_xchg(flags + t, 1)


@triton.jit
def double(tiles, flags, out, TILE: tl.constexpr):
    t = tl.program_id(0)
    while tl.atomic_add(flags + t, 0) == 0:
        pass
    lanes = tl.arange(0, TILE)
    tl.store(out + t * TILE + lanes, tl.load(tiles + t * TILE + lanes) * 2)


def main() -> None:
    tiles = torch.zeros(TILES, TILE, dtype=torch.int32).npu()
    flags = torch.zeros(TILES, dtype=torch.int32).npu()
    out = torch.zeros_like(tiles)
    maker, worker = torch.npu.Stream(), torch.npu.Stream()
    with torch.npu.stream(maker):
        make[1,](tiles, flags, TILES, TILE)
    with torch.npu.stream(worker):
        double[TILES,](tiles, flags, out, TILE)
    torch.npu.current_stream().wait_stream(worker)
    expected = 2 * (torch.arange(TILE) + torch.arange(TILES)[:, None])
    assert torch.equal(out.cpu(), expected.int())
    print(f"{TILES} tiles of {TILE} elements: right")
    torch.npu.synchronize()


if __name__ == "__main__":
    main()
