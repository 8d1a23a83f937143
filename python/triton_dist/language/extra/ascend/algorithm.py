"""Orders in which fused kernels walk over tiles, as device functions.

Source of their semantics: the public reference pages of Triton-distributed for Ascend. The sets of tiles are theirs;
which rank a tile is sent to first is ours, the pages leave it open.
"""

# Arguments of device functions have no Python types.
# mypy: allow-untyped-defs

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def dist_swizzle2d_Nz(
    iter_id, rank_size, data_row_shape, data_col_shape, tile_row_shape, tile_col_shape, comm_npu_split=1
):
    """Tile and rank of one step of a communication in which every tile goes to every rank once.

    Neighbouring tiles start at different ranks, so that cores that work side by side do not all talk to one rank.

    Args:
        iter_id: the step, from 0 to rank_size * cdiv(rows, tile rows) * cdiv(columns, tile columns) - 1.
        rank_size: number of ranks.
        data_row_shape, data_col_shape: shape of the data, in elements.
        tile_row_shape, tile_col_shape: shape of a full tile, in elements.
        comm_npu_split: how many ranks get a tile in consecutive steps; must divide rank_size.

    Returns:
        Row and column of the tile (counted in tiles), rank, and rows and columns of the tile, in elements, which are
        fewer than a full tile's at the end of the data.
    """
    row_tiles = tl.cdiv(data_row_shape, tile_row_shape)
    col_tiles = tl.cdiv(data_col_shape, tile_col_shape)
    rounds = rank_size // comm_npu_split
    steps_of_round = row_tiles * col_tiles * comm_npu_split
    step = iter_id % steps_of_round
    tile = step // comm_npu_split
    rank = (iter_id // steps_of_round + step % comm_npu_split * rounds + tile) % rank_size
    row = tile // col_tiles
    col = tile % col_tiles
    rows = tl.minimum(tile_row_shape, data_row_shape - row * tile_row_shape)
    cols = tl.minimum(tile_col_shape, data_col_shape - col * tile_col_shape)
    return row, col, rank, rows, cols


@triton.jit
def gemm_swizzle2d_Nz(iter_id, data_row_shape, data_col_shape, tile_row_shape, tile_col_shape, swizzle_offset=7):
    """Tile of one step of a walk over a matrix in strips, down one strip and up the next.

    Args:
        iter_id: the step, from 0 to cdiv(rows, tile rows) * cdiv(columns, tile columns) - 1.
        data_row_shape, data_col_shape: shape of the matrix, in elements.
        tile_row_shape, tile_col_shape: shape of a full tile, in elements.
        swizzle_offset: width of a strip, in tiles; the last strip may be narrower.

    Returns:
        Row and column of the tile, counted in tiles.
    """
    row_tiles = tl.cdiv(data_row_shape, tile_row_shape)
    col_tiles = tl.cdiv(data_col_shape, tile_col_shape)
    strip = iter_id // (row_tiles * swizzle_offset)
    step = iter_id % (row_tiles * swizzle_offset)
    width = tl.minimum(swizzle_offset, col_tiles - strip * swizzle_offset)
    down = step // width
    row = tl.where(strip % 2 == 1, row_tiles - 1 - down, down)
    return row, strip * swizzle_offset + step % width
