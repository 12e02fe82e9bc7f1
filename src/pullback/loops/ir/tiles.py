"""Instructions on tiles, which functions of the loop IR call by name: what they mean, in NumPy.

There are 8 tiles of up to 16 rows of 64 bytes (AMX). Numbers of tiles are constants; strides are in bytes.

    tile_shapes(word, ...)          rows, and bytes of a row, of each tile, 8 words as `shapes` makes them; clears all
    tile_release()                  no tiles are in use any more
    tile_zero(t)
    tile_load(t, address, stride)   rows of memory, so far apart
    tile_store(t, address, stride)
    tile_dot_bf16(c, a, b)          see `dot_floats`
    tile_dot_i8i8(c, a, b)          sums of products of four neighbours of a row of a and of b; also i8u8, u8i8, u8u8
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

TILES, ROWS, ROW_BYTES = 8, 16, 64
DOTS = {"bf16": "dpbf16ps", "i8i8": "dpbssd", "i8u8": "dpbsud", "u8i8": "dpbusd", "u8u8": "dpbuud"}
INSTRUCTIONS = {
    "tile_shapes": "ldtilecfg",
    "tile_release": "tilerelease",
    "tile_zero": "tilezero",
    "tile_load": "tileloadd64",
    "tile_store": "tilestored64",
    **{f"tile_dot_{kind}": "t" + name for kind, name in DOTS.items()},
}
ROWS_AT, BYTES_AT = 48, 16  # where the shapes have the rows of tile 0, and the bytes of its rows (two for each tile)


def shapes(tiles: Sequence[tuple[int, int]]) -> list[int]:
    """(rows, bytes of a row) of tiles 0, 1, ... as `tile_shapes` reads them."""
    found = np.zeros(64, np.uint8)
    found[0] = 1  # the palette
    for k, (rows, row_bytes) in enumerate(tiles):
        found[ROWS_AT + k], found[BYTES_AT + 2 * k] = rows, row_bytes
    return [int(word) for word in found.view(np.int64)]


def dot_floats(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """c[m, n] + sums over k of a[m, k] * b[k, n], pairs of bf16 each; all as float32.

    Products with even numbers and with odd ones are added in two chains from zero, each rounded once with its product;
    then the two sums are added, and that to c. Denormal numbers are zeros, of operands and of each result.
    """
    from pullback.loops.ir.numpy_ops import flushed, fused

    chains = [np.zeros(c.shape, np.float32), np.zeros(c.shape, np.float32)]
    for k in range(a.shape[1]):
        for place, shift in enumerate((16, 0)):
            left, right = (
                flushed((v << np.uint32(shift) & np.uint32(0xFFFF0000)).view(np.float32)) for v in (a[:, k], b[k])
            )
            chains[place] = flushed(fused(left[:, None], right[None], chains[place]))
    return flushed(flushed(c) + flushed(chains[0] + chains[1]))


def dot_integers(kind: str, c: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """c[m, n] + sums over k of the products of the four bytes of a[m, k] and of b[k, n], wrapped to 32 bits."""
    left, right = (
        np.ascontiguousarray(v).view(np.int8 if name == "i8" else np.uint8).reshape(*v.shape, 4).astype(np.int64)
        for v, name in ((a, kind[:2]), (b, kind[2:]))
    )
    total = c.astype(np.int64) + np.einsum("mkq,knq->mn", left, right)
    return total.astype(np.int32)


class Tiles:
    """The tiles of a thread."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, int]] = []
        self.tiles: list[np.ndarray] = []  # of 32-bit words

    def call(self, symbol: str, *args: Any) -> None:
        """Runs an instruction; addresses are (array, offset in elements)."""
        match symbol.removeprefix("tile_"):
            case "shapes":
                said = np.array(args, np.int64).view(np.uint8)
                self.shapes = [(int(said[ROWS_AT + t]), int(said[BYTES_AT + 2 * t])) for t in range(TILES)]
                self.tiles = [np.zeros((rows, size // 4), np.uint32) for rows, size in self.shapes]
            case "release":
                self.shapes, self.tiles = [], []
            case "zero":
                self.tiles[int(args[0])][:] = 0
            case "load" | "store" as name:
                tile, (array, offset), stride = self.tiles[int(args[0])], args[1], int(args[2])
                memory = array.view(np.uint8)
                for k, row in enumerate(tile):
                    at = offset * array.itemsize + k * stride
                    place = memory[at : at + row.nbytes]
                    if place.size != row.nbytes:
                        raise IndexError(f"{symbol}: row {k} of tile {args[0]} lies outside of its buffer")
                    if name == "load":
                        row[:] = place.copy().view(np.uint32)
                    else:
                        place[:] = row.view(np.uint8)
            case kind:
                c, a, b = (self.tiles[int(t)] for t in args)
                if kind == "dot_bf16":
                    c[:] = dot_floats(c.view(np.float32), a, b).view(np.uint32)
                else:
                    c[:] = dot_integers(kind.removeprefix("dot_"), c.view(np.int32), a, b).view(np.uint32)


__all__ = ["BYTES_AT", "DOTS", "INSTRUCTIONS", "ROWS", "ROWS_AT", "ROW_BYTES", "TILES", "Tiles", "shapes"]
