"""The swizzles visit every tile once, in the documented order where there is one."""

# Arguments of kernels have no Python types, and torch gets its `npu` when it is imported.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, disable-error-code=attr-defined

from __future__ import annotations

from itertools import pairwise

import torch
import triton
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st

from triton_dist.language.extra.ascend.algorithm import dist_swizzle2d_Nz, gemm_swizzle2d_Nz

sizes = st.integers(1, 40)
tiles = st.integers(1, 17)


@triton.jit
def walk_gemm(out, steps, rows, cols, tile_rows, tile_cols, strip):
    for i in range(steps):
        row, col = gemm_swizzle2d_Nz(i, rows, cols, tile_rows, tile_cols, strip)
        tl.store(out + 2 * i, row)
        tl.store(out + 2 * i + 1, col)


@triton.jit
def walk_gemm_by_default(out, rows, cols):
    for i in range(rows * cols):
        row, col = gemm_swizzle2d_Nz(i, rows, cols, 1, 1)
        tl.store(out + 2 * i, row)
        tl.store(out + 2 * i + 1, col)


@triton.jit
def walk_dist(out, steps, ranks, rows, cols, tile_rows, tile_cols, split):
    for i in range(steps):
        row, col, rank, height, width = dist_swizzle2d_Nz(i, ranks, rows, cols, tile_rows, tile_cols, split)
        tl.store(out + 5 * i, row)
        tl.store(out + 5 * i + 1, col)
        tl.store(out + 5 * i + 2, rank)
        tl.store(out + 5 * i + 3, height)
        tl.store(out + 5 * i + 4, width)


def test_gemm_walks_down_one_strip_and_up_the_next() -> None:
    # The example of the reference page: 3 rows and 10 columns of tiles, strips of 7.
    out = torch.full((60,), -1, dtype=torch.int32).npu()
    walk_gemm_by_default[(1,)](out, 3, 10)
    want = [(row, col) for row in (0, 1, 2) for col in range(7)] + [
        (row, col) for row in (2, 1, 0) for col in (7, 8, 9)
    ]
    assert [tuple(tile) for tile in out.cpu().reshape(30, 2).tolist()] == want


@settings(max_examples=30, deadline=None)
@given(rows=sizes, cols=sizes, tile_rows=tiles, tile_cols=tiles, strip=st.integers(1, 9))
def test_gemm_visits_every_tile_once(rows: int, cols: int, tile_rows: int, tile_cols: int, strip: int) -> None:
    row_tiles, col_tiles = triton.cdiv(rows, tile_rows), triton.cdiv(cols, tile_cols)
    steps = row_tiles * col_tiles
    out = torch.full((2 * steps,), -1, dtype=torch.int32).npu()
    walk_gemm[(1,)](out, steps, rows, cols, tile_rows, tile_cols, strip)
    seen = [tuple(tile) for tile in out.cpu().reshape(steps, 2).tolist()]
    assert sorted(seen) == [(row, col) for row in range(row_tiles) for col in range(col_tiles)]
    for (row, col), (next_row, next_col) in pairwise(seen):
        # Within a strip rows are neighbours; strips follow each other from left to right, in one row.
        assert next_row == row if next_col // strip > col // strip else abs(next_row - row) <= 1
        assert next_col // strip >= col // strip


@settings(max_examples=30, deadline=None)
@given(ranks=st.sampled_from([1, 2, 4, 6, 8]), rows=sizes, cols=sizes, tile_rows=tiles, tile_cols=tiles, data=st.data())
def test_dist_sends_every_tile_to_every_rank_once(
    ranks: int, rows: int, cols: int, tile_rows: int, tile_cols: int, data: st.DataObject
) -> None:
    split = data.draw(st.sampled_from([s for s in range(1, ranks + 1) if ranks % s == 0]))
    row_tiles, col_tiles = triton.cdiv(rows, tile_rows), triton.cdiv(cols, tile_cols)
    steps = ranks * row_tiles * col_tiles
    out = torch.full((5 * steps,), -1, dtype=torch.int32).npu()
    walk_dist[(1,)](out, steps, ranks, rows, cols, tile_rows, tile_cols, split)
    seen = out.cpu().reshape(steps, 5).tolist()
    places = [(row, col, rank) for row, col, rank, _, _ in seen]
    assert sorted(places) == [(r, c, k) for r in range(row_tiles) for c in range(col_tiles) for k in range(ranks)]
    for row, col, _, height, width in seen:
        assert height == min(tile_rows, rows - row * tile_rows)
        assert width == min(tile_cols, cols - col * tile_cols)
    for i in range(0, steps, split):
        # A tile goes to so many ranks in a row.
        assert len({place[:2] for place in places[i : i + split]}) == 1
    first = [rank for _, _, rank in places[: row_tiles * col_tiles * split : split]]
    assert first == [(first[0] + i) % ranks for i in range(len(first))]


def test_swizzles_take_constants() -> None:
    out = torch.full((5,), -1, dtype=torch.int32).npu()
    constant_arguments[(1,)](out)
    assert out.tolist() == [0, 1, 1, 4, 2]


@triton.jit
def constant_arguments(out):
    row, col, rank, height, width = dist_swizzle2d_Nz(1, 2, 8, 6, 4, 4)
    tl.store(out, row)
    tl.store(out + 1, col)
    tl.store(out + 2, rank)
    tl.store(out + 3, height)
    tl.store(out + 4, width)
