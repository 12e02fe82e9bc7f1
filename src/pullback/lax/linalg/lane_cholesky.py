"""The Cholesky factor of a real matrix: A = U^T U, the rows of U in lanes.

    for each TOGETHER rows of U, which begin as those of A:
        a block on the diagonal loses the products of all rows before, and is factored by straight code
        each vector of columns behind it loses the same products, and is solved by the block, in registers

It is the substitution of lane_solve.py with a triangle that is found on the way. A matrix whose size is no multiple of
a vector's gets rows of the identity, so that there are no rests.

Measured (one core of a Xeon with AVX-512, us), OpenBLAS's potrf and this: float32 of 33 rows 2.9 and 2.7, 60 8.9 and
4.4, 120 36 and 18, 191 106 and 58, float64 3.8 and 2.5, 12 and 6.7, 45 and 21, 176 and 109; by blocks on two cores
(blocked_cholesky.py) and this: float32 of 250 137 and 122, 300 183 and 187, float64 212 and 224, 311 and 328. Eight
rows together are up to 1.3 times as quick, but take half as long again to compile.
"""

from __future__ import annotations

from typing import Any

from pullback.lax.linalg.lane_solve import VECTOR, framed, less_products, padded, solve_rows
from pullback.lax.records.nests import loops
from pullback.loops.ir import ITEMSIZE

REAL = ("f32", "f64")
LEAST, MOST = 28, 240  # rows of a matrix; of a larger one threads share blocks, if it is alone
TOGETHER = 4  # rows that are found at once


def suits(dtype: str, n: int, alone: bool) -> bool:
    """Whether it is quicker than a call of LAPACK, or than blocks."""
    return dtype in REAL and n >= LEAST and not (alone and n >= MOST)


def cholesky(ctx: Any, a: Any, out: Any, upper: Any) -> None:
    """out = the lower triangular factor of a[n, n], NaN if it has none; `upper` is memory of padded(n) x padded(n)."""
    b, n, size, dtype = ctx.b, a.shape[0], upper.shape[0], a.dtype
    info = ctx.local("i32", (1,), "info")
    width = VECTOR // ITEMSIZE[dtype]
    corner = ctx.local(dtype, (TOGETHER, TOGETHER), "corner")
    of_block = range(TOGETHER)

    framed(ctx, a.transposed((1, 0)), upper)
    ctx.store(info, (0,), 0)

    def less_earlier(start: Any, column: Any) -> list[list[Any]]:
        """The block's elements in a column, less what the rows before `start` take."""
        return less_products(
            b,
            [[ctx.load(upper, (start + q, column))] for q in of_block],
            start,
            lambda k: [ctx.load(upper, (k, start + q)) for q in of_block],
            lambda k: [ctx.load(upper, (k, column))],
        )

    with b.loop(size // TOGETHER, "sequential", "block") as block:
        start = b.let(block * TOGETHER)
        with b.loop(TOGETHER, "vector", "j", (("lanes", TOGETHER),)) as j:
            for q, (value,) in enumerate(less_earlier(start, start + j)):
                ctx.store(corner, (q, j), value)
        rows = {(q, t): b.let(ctx.load(corner, (q, t))) for q in of_block for t in of_block if t >= q}
        scales, bad = [], ctx.load(info, (0,))
        for q in of_block:
            pivot = rows[q, q]
            bad = b.select(b.op("gt", pivot, b.const(dtype, 0)), bad, b.const("i32", 1))
            rows[q, q] = b.let(b.op("sqrt", pivot))
            scales.append(b.let(b.op("div", b.const(dtype, 1), rows[q, q])))
            for t in range(q + 1, TOGETHER):
                rows[q, t] = b.let(b.mul(rows[q, t], scales[q]))
            for s in range(q + 1, TOGETHER):
                for t in range(s, TOGETHER):
                    rows[s, t] = b.let(b.sub(rows[s, t], b.term(rows[q, s], rows[q, t])))
        for (q, t), value in rows.items():
            ctx.store(upper, (start + q, start + t), value)
        ctx.store(info, (0,), bad)
        behind = b.let(start + TOGETHER)
        first = b.let(b.floordiv(behind, b.index(width)))
        panels = b.loop(b.index(size // width) - first, "sequential", "panel")
        with panels as panel, b.loop(width, "vector", "j", (("lanes", width),)) as j:
            column = (first + panel) * width + j
            solved = less_earlier(start, column)
            solve_rows(b, solved, scales, lambda later, q: rows[q, later])
            for q, (value,) in enumerate(solved):
                old = ctx.load(upper, (start + q, column))
                ctx.store(upper, (start + q, column), b.select(b.op("ge", column, behind), value, old))

    failed = b.let(b.op("ne", ctx.load(info, (0,)), 0))

    def write(index: tuple[Any, Any]) -> None:
        i, j = index
        value = b.select(failed, b.const(dtype, float("nan")), ctx.load(upper, (j, i)))
        ctx.store(out, index, b.select(b.op("le", j, i), value, b.const(dtype, 0)))

    loops(b, (n, n), write)


__all__ = ["cholesky", "padded", "suits"]
