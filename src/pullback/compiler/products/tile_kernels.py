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
    b = Builder()
    word = WORDS[kind]
    size = b.input("sizes", "i64", len(SIZES))
    tables = [b.input(name, "i64", ANY) for name in ("x_at", "y_at")] if indexed else []
    x, y, out = (
        b.input("x", "bf16" if indexed else word, sizes[0]),
        b.input("y", word, sizes[1]),
        b.output("out", word, sizes[2]),
    )
    field = {name: b.let(b.load(size, k), name) for k, name in enumerate(SIZES)}
    down, across = -(-rows // ROWS), columns // ROWS
    heights = [rows // down + (k < rows % down) for k in range(down)]
    starts = [sum(heights[:k]) for k in range(down)]
    # Tiles: results, then x, then y.
    result = [[r * across + c for c in range(across)] for r in range(down)]
    left = [down * across + r for r in range(down)]
    right = [down * across + down + c for c in range(across)]

    if indexed:
        rest, whole = field["y_inner"], field["inner"]
    else:
        rest = b.let(b.floormod(field["inner"], b.index(STEP)), "rest")
        whole = b.let(field["inner"] - rest, "whole")
    x_bytes = b.let(field["x_row"] * ITEMSIZE[x.dtype], "x_bytes")
    sums = [(height, ROW_BYTES) for height in heights for _ in range(across)]

    full: list[Expr] = list(
        map(b.index, shapes(sums + [(height, ROW_BYTES) for height in heights] + [(STEP, ROW_BYTES)] * across))
    )
    some: list[Expr] = list(
        map(b.index, shapes(sums + [(height, 0) for height in heights] + [(0, ROW_BYTES)] * across))
    )
    for byte, value in [(BYTES_AT + 2 * tile, rest * 4) for tile in left] + [(ROWS_AT + tile, rest) for tile in right]:
        some[byte // 8] = b.let(some[byte // 8] + value * (1 << byte % 8 * 8))

    def number(tile: int) -> Expr:
        return b.index(tile)

    def steps(row: Expr, first: Expr, column: Expr, start: Expr, count: Expr | int, begin: Expr) -> None:
        """A block of results, of `count` steps from the contracted word `start` on; they `begin` at zero or go on."""
        places = [
            (tile, Address(out, (row + at) * field["out_row"] + column + c * ROWS))
            for at, tiles in zip(starts, result)
            for c, tile in enumerate(tiles)
        ]
        apart = field["out_row"] * 4

        def load() -> None:
            for tile, place in places:
                b.call("tile_load", number(tile), place, apart)

        if added:
            load()
        else:
            with b.if_(begin) as branch:
                for tile, _ in places:
                    b.call("tile_zero", number(tile))
            with branch.otherwise():
                load()
        with b.loop(count, "sequential", "k") as k:
            if indexed:
                x_at, y_at = (b.let(b.load(table, start + k), "at") for table in tables)
            else:
                x_at = b.let(start + k * STEP, "at")
                y_at = x_at * columns
            for c, tile in enumerate(right):
                place = Address(y, first + y_at + c * ROWS)
                b.call("tile_load", number(tile), place, b.index(4 * columns))
            for r, tile in enumerate(left):
                place = Address(x, (row + starts[r]) * field["x_row"] + x_at)
                b.call("tile_load", number(tile), place, x_bytes)
                for c, other in enumerate(right):
                    b.call(f"tile_dot_{kind}", number(result[r][c]), number(tile), number(other))
        for tile, place in places:
            b.call("tile_store", number(tile), place, apart)

    blocks = b.let(b.floordiv(field["rows"] + (rows - 1), b.index(rows)), "blocks")
    alone = blocks if added else b.let(b.floordiv(field["rows"], b.index(rows)), "alone")  # that do not overlap
    slabs = b.let(b.op("min", whole, 1) if indexed else b.floordiv(whole + (SLAB - 1), b.index(SLAB)), "slabs")
    tails = field["x_inner"] if indexed else b.index(1)
    b.call("tile_shapes", *full)
    with b.loop(field["panels"], "sequential", "panel") as panel:
        at = panel * columns
        column = b.let(at if added else b.op("min", at, field["columns"] - columns), "column")
        first = b.let(b.op("min", panel * field["y_panel"], field["y_last"]), "first")
        # The block that overlaps one before begins anew, once that is done.
        with b.loop(1 + blocks - alone, "sequential", "last") as last:
            top = b.let(b.select(b.eq(last, b.index(0)), b.index(0), field["rows"] - rows), "top")
            count = b.let(b.select(b.eq(last, b.index(0)), alone, b.index(1)), "count")
            with b.loop(slabs, "sequential", "slab") as slab:
                start = b.let(slab * SLAB, "start")
                extent = whole
                if not indexed:
                    extent = b.let(b.floordiv(b.op("min", whole - start, SLAB), b.index(STEP)), "extent")
                with b.loop(count, "sequential", "block") as block:
                    begin = b.eq(slab, b.index(0))
                    steps(b.let(top + block * rows, "row"), first, column, start, extent, begin)
            with b.if_(b.op("gt", rest, b.index(0))):
                b.call("tile_shapes", *some)
                with b.loop(count, "sequential", "block") as block:
                    begin = b.eq(whole, b.index(0))
                    steps(b.let(top + block * rows, "row"), first, column, whole, tails, begin)
                b.call("tile_shapes", *full)
    b.call("tile_release")
    return b.function(tile_kernel_name(kind, rows, columns, added, indexed))


__all__ = ["STEP", "WORDS", "tile_kernel", "tile_kernel_name", "tile_shape"]
