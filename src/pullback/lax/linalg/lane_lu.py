"""The LU factors of a real square matrix, rows in lanes: P A = L U, with the largest of each column as its pivot.

    for each block of columns, a vector wide:
        its rows, from the diagonal on, lose the products of all rows of U and columns of L before
        for each of its columns: the rows of the pivot and of the diagonal are exchanged, as a whole, and the rows below
            lose their part of the pivot's row; the largest element of every column is noted on the way
        the rows of U behind the block lose the products of all before, and are solved by the block, in registers

It is the factor of lane_cholesky.py with pivots, by the loops of lane_solve.py, and is framed as that is: the rows of
the identity come last, and are never exchanged with others, since of equal elements the first is the pivot.

Measured (two cores of a Xeon with AVX-512, us), OpenBLAS's getrf, by blocks from 64 rows on, and this, on one core:
float32 of 16 rows 2.0 and 1.2, 30 4.6 and 2.8, 64 14.0 and 7.3, 100 32 and 18, 200 127 and 78, float64 1.9 and 1.9, 4.7
and 3.4, 16 and 10, 42 and 27, 163 and 132; with AVX2 float32 of 100 rows 38 and 29, 200 171 and 130, 256 187 and 252.
50 matrices of 30 x 30 116 and 45.
"""

from __future__ import annotations

from typing import Any

from pullback.lax.linalg.lane_solve import VECTOR, framed, less_products, padded, solve_rows
from pullback.lax.records.nests import loops
from pullback.loops.emit.cpu.target import current_target
from pullback.loops.ir import ITEMSIZE

REAL = ("f32", "f64")
LEAST, MOST = 13, 210  # rows of a matrix; of a larger one threads share blocks, if it is alone
CHAINS = 4  # rows that lose their part at once: each notes largest elements of its own


def suits(dtype: str, m: int, n: int, alone: bool) -> bool:
    """Whether it is quicker than a call of LAPACK, or than blocks."""
    return dtype in REAL and m == n and n >= LEAST and not (alone and n >= MOST)


def scratch_shape(dtype: str, n: int) -> tuple[int, int]:
    """The shape of the memory in which a matrix of n rows is factored: some rows more, so that they go in chains."""
    size = padded(dtype, n)
    return size + CHAINS, size


def lu(ctx: Any, a: Any, out: Any, swaps: Any, held: Any) -> None:
    """out = the factors of a[n, n]; swaps[i] is the row, counted from 1, that row i is exchanged with.

    `held` is memory of as many numbers as `scratch_shape` says.
    """
    b, n, size = ctx.b, a.shape[0], held.shape[1]
    framed(ctx, a, held.slice((0, 0), (size, size)))
    loops(b, (CHAINS, size), lambda at: ctx.store(held, (b.let(at[0] + size), at[1]), b.const(a.dtype, 0)))
    width = VECTOR // ITEMSIZE[a.dtype]
    some = 8 if current_target().vector_bytes == VECTOR else 4
    lanes = (("lanes", width),)
    found = ctx.local("i32", (width,), "found")
    pivots = ctx.local(a.dtype, (width,), "pivots")

    def less_earlier(row: Any, before: Any, column: Any) -> list[list[Any]]:
        """Some rows' elements in a column, less the products of what is before `before`."""
        return less_products(
            b,
            [[ctx.load(held, (row + q, column))] for q in range(some)],
            before,
            lambda k: [ctx.load(held, (row + q, k)) for q in range(some)],
            lambda k: [ctx.load(held, (k, column))],
        )

    def solve(row: Any, column: Any) -> None:
        """Some rows' elements of U in a column behind the block of these rows."""
        solved = less_earlier(row, row, column)
        solve_rows(b, solved, [None] * some, lambda later, q: ctx.load(held, (row + later, row + q)))
        for q, (value,) in enumerate(solved):
            ctx.store(held, (row + q, column), value)

    with b.loop(size // width, "sequential", "block") as block:
        start = b.let(block * width)
        with b.loop(b.floordiv(b.index(n + some - 1) - start, b.index(some)), "sequential", "rows") as group:
            row = b.let(start + group * some)
            with b.loop(width, "vector", "j", lanes) as j:
                for q, (value,) in enumerate(less_earlier(row, start, start + j)):
                    ctx.store(held, (row + q, start + j), value)
        columns = b.let(b.op("min", b.index(width), b.index(n) - start))
        _first_pivot(ctx, held, start, n, found)
        with b.loop(width, "vector", "j", lanes) as j:
            ctx.store(pivots, (j,), b.const(a.dtype, 1))
        with b.loop(columns, "sequential", "column") as column:
            _eliminate(ctx, held, start, column, n, found, pivots, swaps)
        behind = b.let(start + width)
        with b.loop(b.index(n) - start, "sequential", "row") as at, b.loop(width, "vector", "j", lanes) as j:
            place = start + at, start + j
            value = b.let(ctx.load(held, place))
            ctx.store(held, place, b.select(b.lt(j, at), b.op("div", value, ctx.load(pivots, (j,))), value))
        with b.loop(b.floordiv(b.index(size) - behind, b.index(width)), "sequential", "panel") as panel:
            for first in range(0, width, some):
                row = b.let(start + first)
                with b.loop(width, "vector", "j", lanes) as j:
                    solve(row, behind + panel * width + j)
    loops(b, (n, n), lambda index: ctx.store(out, index, ctx.load(held, index)))


def _first_pivot(ctx: Any, held: Any, start: Any, n: int, found: Any) -> None:
    """found[0] = the row of the largest element of column `start`, from the diagonal on."""
    b = ctx.b
    begin = (b.const(held.dtype, -1), b.convert(start, "i32"))
    with b.carried_loop(b.index(n) - start, [(begin, None)]) as rows:
        row = b.let(start + rows.i)
        rows.update(*_larger(b, row, b.op("abs", ctx.load(held, (row, start))), *rows.vars))
    ctx.store(found, (0,), rows.results[1])


def _larger(b: Any, row: Any, size: Any, most: Any, at: Any) -> tuple[Any, Any]:
    """(the larger of a size and the one noted so far, the row where it is); a NaN is never larger."""
    size = b.let(size)
    larger = b.let(b.op("gt", size, most))
    return b.select(larger, size, most), b.select(larger, b.convert(row, "i32"), at)


def _eliminate(ctx: Any, held: Any, start: Any, column: Any, n: int, found: Any, pivots: Any, swaps: Any) -> None:
    """The block's columns after `column`, a column of it, less the products of that; where their pivots are."""
    b, size, (width,) = ctx.b, held.shape[1], found.shape
    lanes = (("lanes", width),)
    diagonal = b.let(start + column)
    chosen = b.let(ctx.load(found, (column,)))
    ctx.store(swaps, (diagonal,), chosen + b.const("i32", 1))
    chosen = b.let(b.convert(chosen, "i64"))
    with b.loop(size // width, "sequential", "panel") as panel, b.loop(width, "vector", "j", lanes) as j:
        places = [(row, panel * width + j) for row in (diagonal, chosen)]
        for place, value in zip(places, [b.let(ctx.load(held, place)) for place in reversed(places)]):
            ctx.store(held, place, value)
    zero, one = b.const(held.dtype, 0), b.const(held.dtype, 1)
    pivot = b.let(ctx.load(held, (diagonal, diagonal)))
    pivot = b.let(b.select(b.eq(pivot, zero), one, pivot))  # all of the column is zero then, and so are its factors
    ctx.store(pivots, (column,), pivot)
    first = b.let(diagonal + 1)
    begin = (b.const(held.dtype, -1), b.convert(first, "i32"))
    count = b.floordiv(b.index(n + CHAINS - 1) - first, b.index(CHAINS))
    with b.loop(width, "vector", "j", lanes) as j:
        # No factor is larger than 1: what is before the column stays as it is.
        upper = b.let(b.select(b.lt(column, j), ctx.load(held, (diagonal, start + j)), zero))
        with b.carried_loop(count, [(begin, None)] * CHAINS) as rows:
            noted: list[Any] = []
            for chain in range(CHAINS):
                row = b.let(first + rows.i * CHAINS + chain)
                factor = b.let(b.op("div", ctx.load(held, (row, diagonal)), pivot))
                value = b.let(b.sub(ctx.load(held, (row, start + j)), b.term(factor, upper)))
                ctx.store(held, (row, start + j), value)
                noted += _larger(b, row, b.op("abs", value), *rows.vars[2 * chain : 2 * chain + 2])
            rows.update(*noted)
        most, at = rows.results[:2]
        for chain in range(1, CHAINS):
            other, there = rows.results[2 * chain : 2 * chain + 2]
            earlier = b.op("and", b.eq(other, most), b.lt(there, at))
            better = b.let(b.op("or", b.op("gt", other, most), earlier))
            most, at = b.let(b.select(better, other, most)), b.let(b.select(better, there, at))
        # Of NaNs alone none is larger than what is not of the matrix.
        own = b.convert(start + j, "i32")
        ctx.store(found, (j,), b.select(b.lt(at, b.const("i32", n)), at, own))


__all__ = ["lu", "scratch_shape", "suits"]
