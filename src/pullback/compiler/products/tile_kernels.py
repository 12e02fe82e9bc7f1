"""Kernels of products for CPUs that multiply tiles (AMX): of bf16, and of integers of 8 bits.

They take what the kernels of kernels.py take, the contracted elements in words of 32 bits: two bf16, or four integers,
that are neighbours in x; y has them so in panels. A block of results is up to 2 x 2 tiles of 16 x 16, which stay in
their registers while STEP contracted words after the other are multiplied: four loads of tiles for four products.

The order of additions is that of the instruction (loops/ir/tiles.py): of 32 neighbouring contracted elements the even
ones and the odd ones each in a chain from zero, these two together, and that to the sum so far. It depends on the
contracted elements alone, and errors grow with a 32nd of their number. What is left after whole tiles is multiplied in
tiles of that size, not filled up with zeros: x may be read where it lies.

Panels are as long as the first cache holds (SLAB): rows of x come from the second one meanwhile, half of what is read.
"""

from __future__ import annotations

from pullback.loops.emit.symbols import KERNEL
from pullback.loops.ir import ITEMSIZE, Address, Builder, Expr, Function
from pullback.loops.ir.tiles import BYTES_AT, DOTS, ROW_BYTES, ROWS, ROWS_AT, shapes

from .kernels import ANY, SIZES

STEP = ROW_BYTES // 4  # words of a row of a tile
SLAB = 16 * STEP  # contracted words of 32 columns of y that stay in the first cache: 32 KB
WORDS = {"bf16": "f32"} | {kind: "i32" for kind in DOTS if kind != "bf16"}  # types of words and of results
ACROSS = 2  # tiles of columns of a block, and of rows


def tile_shape(m: int, n: int) -> tuple[int, int]:
    """(rows, columns) of the block of results for a product of m rows and n columns."""
    rows, columns = ACROSS * ROWS, ROWS * min(ACROSS, -(-n // ROWS))
    return -(-m // -(-m // rows)) if m < 4 * rows else rows, columns


def tile_kernel_name(kind: str, rows: int, columns: int, added: bool = False, indexed: bool = False) -> str:
    """The symbol of a kernel; `kind` is of DOTS."""
    return f"{KERNEL}{kind}_{rows}x{columns}_tiles{'_added' * added}{'_indexed' * indexed}"


def tile_kernel(
    kind: str,
    rows: int,
    columns: int,
    added: bool = False,
    sizes: tuple[int, int, int] = (ANY, ANY, ANY),
    indexed: bool = False,
) -> Function:
    """As panel_kernel: out[i, j] = sum over k of x[i, k] * y[j // columns, k, j % columns].

    `rows` are up to 32, `columns` 16 or 32. The last block of rows overlaps the one before, and so does the last panel
    in out; with `added` no block does, and results are added to what is in out.

    An `indexed` kernel has two more arguments, after the sizes: where each row of tiles begins in a row of x, and in a
    panel of y. First come `inner` whole ones of STEP words, then `x_inner` ones of `y_inner` words. x is counted in
    elements of bf16, which may begin anywhere.
    """
    kernel = _TileKernel(kind, rows, columns, added, sizes, indexed)
    kernel.write()
    return kernel.b.function(tile_kernel_name(kind, rows, columns, added, indexed))


class _TileKernel:
    """Writes a kernel: its arguments, panels, blocks in slabs of the contracted axis and what is left of it, steps."""

    def __init__(
        self, kind: str, rows: int, columns: int, added: bool, sizes: tuple[int, int, int], indexed: bool
    ) -> None:
        self.kind, self.rows, self.columns, self.added, self.indexed = kind, rows, columns, added, indexed
        self.b = b = Builder()
        word = WORDS[kind]
        size = b.input("sizes", "i64", len(SIZES))
        self.tables = [b.input(name, "i64", ANY) for name in ("x_at", "y_at")] if indexed else []
        self.x = b.input("x", "bf16" if indexed else word, sizes[0])
        self.y, self.out = b.input("y", word, sizes[1]), b.output("out", word, sizes[2])
        self.field = {name: b.let(b.load(size, k), name) for k, name in enumerate(SIZES)}
        down, across = -(-rows // ROWS), columns // ROWS
        self.heights = [rows // down + (k < rows % down) for k in range(down)]
        self.starts = [sum(self.heights[:k]) for k in range(down)]
        # Tiles: results, then x, then y.
        self.result = [[r * across + c for c in range(across)] for r in range(down)]
        self.left = [down * across + r for r in range(down)]
        self.right = [down * across + down + c for c in range(across)]
        if indexed:
            self.rest, self.whole = self.field["y_inner"], self.field["inner"]
        else:
            self.rest = b.let(b.floormod(self.field["inner"], b.index(STEP)), "rest")
            self.whole = b.let(self.field["inner"] - self.rest, "whole")
        self.x_bytes = b.let(self.field["x_row"] * ITEMSIZE[self.x.dtype], "x_bytes")
        self.full, self.some = self._shapes()

    def _shapes(self) -> tuple[list[Expr], list[Expr]]:
        """The shapes of tiles for whole steps, and for what is left."""
        b, across = self.b, len(self.right)
        sums = [(height, ROW_BYTES) for height in self.heights for _ in range(across)]
        whole = sums + [(height, ROW_BYTES) for height in self.heights] + [(STEP, ROW_BYTES)] * across
        full: list[Expr] = list(map(b.index, shapes(whole)))
        left = sums + [(height, 0) for height in self.heights] + [(0, ROW_BYTES)] * across
        some: list[Expr] = list(map(b.index, shapes(left)))
        bytes_ = [(BYTES_AT + 2 * tile, self.rest * 4) for tile in self.left]
        for byte, value in bytes_ + [(ROWS_AT + tile, self.rest) for tile in self.right]:
            some[byte // 8] = b.let(some[byte // 8] + value * (1 << byte % 8 * 8))
        return full, some

    def write(self) -> None:
        b, field, rows = self.b, self.field, self.rows
        blocks = b.let(b.floordiv(field["rows"] + (rows - 1), b.index(rows)), "blocks")
        # Blocks that do not overlap.
        alone = blocks if self.added else b.let(b.floordiv(field["rows"], b.index(rows)), "alone")
        slabs = b.op("min", self.whole, 1) if self.indexed else b.floordiv(self.whole + (SLAB - 1), b.index(SLAB))
        slabs = b.let(slabs, "slabs")
        b.call("tile_shapes", *self.full)
        with b.loop(field["panels"], "sequential", "panel") as panel:
            at = panel * self.columns
            column = b.let(at if self.added else b.op("min", at, field["columns"] - self.columns), "column")
            first = b.let(b.op("min", panel * field["y_panel"], field["y_last"]), "first")
            # The block that overlaps one before begins anew, once that is done.
            with b.loop(1 + blocks - alone, "sequential", "last") as last:
                top = b.let(b.select(b.eq(last, b.index(0)), b.index(0), field["rows"] - rows), "top")
                count = b.let(b.select(b.eq(last, b.index(0)), alone, b.index(1)), "count")
                self._blocks(top, count, slabs, first, column)
        b.call("tile_release")

    def _blocks(self, top: Expr, count: Expr, slabs: Expr, first: Expr, column: Expr) -> None:
        """`count` blocks of rows from `top` on, slab after slab of the contracted axis, and then what is left of it."""
        b, whole, zero = self.b, self.whole, self.b.index(0)
        with b.loop(slabs, "sequential", "slab") as slab:
            start = b.let(slab * SLAB, "start")
            extent = whole
            if not self.indexed:
                extent = b.let(b.floordiv(b.op("min", whole - start, SLAB), b.index(STEP)), "extent")
            with b.loop(count, "sequential", "block") as block:
                begin = b.eq(slab, zero)
                self._steps(b.let(top + block * self.rows, "row"), first, column, start, extent, begin)
        tails = self.field["x_inner"] if self.indexed else b.index(1)
        with b.if_(b.op("gt", self.rest, zero)):
            b.call("tile_shapes", *self.some)
            with b.loop(count, "sequential", "block") as block:
                begin = b.eq(whole, zero)
                self._steps(b.let(top + block * self.rows, "row"), first, column, whole, tails, begin)
            b.call("tile_shapes", *self.full)

    def _steps(self, row: Expr, first: Expr, column: Expr, start: Expr, count: Expr, begin: Expr) -> None:
        """A block of results, of `count` steps from the contracted word `start` on; they `begin` at zero or go on."""
        b, field, number = self.b, self.field, self.b.index
        apart = field["out_row"] * 4
        places = [
            (tile, Address(self.out, (row + at) * field["out_row"] + column + c * ROWS))
            for at, tiles in zip(self.starts, self.result)
            for c, tile in enumerate(tiles)
        ]

        def load() -> None:
            for tile, place in places:
                b.call("tile_load", number(tile), place, apart)

        if self.added:
            load()
        else:
            with b.if_(begin) as branch:
                for tile, _ in places:
                    b.call("tile_zero", number(tile))
            with branch.otherwise():
                load()
        with b.loop(count, "sequential", "k") as k:
            if self.indexed:
                x_at, y_at = (b.let(b.load(table, start + k), "at") for table in self.tables)
            else:
                x_at = b.let(start + k * STEP, "at")
                y_at = x_at * self.columns
            for c, tile in enumerate(self.right):
                place = Address(self.y, first + y_at + c * ROWS)
                b.call("tile_load", number(tile), place, number(4 * self.columns))
            for r, tile in enumerate(self.left):
                place = Address(self.x, (row + self.starts[r]) * field["x_row"] + x_at)
                b.call("tile_load", number(tile), place, self.x_bytes)
                for c, other in enumerate(self.right):
                    b.call(f"tile_dot_{self.kind}", number(self.result[r][c]), number(tile), number(other))
        for tile, place in places:
            b.call("tile_store", number(tile), place, apart)


__all__ = ["STEP", "WORDS", "tile_kernel", "tile_kernel_name", "tile_shape"]
