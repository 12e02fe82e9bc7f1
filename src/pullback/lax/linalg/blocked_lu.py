"""The LU factors of one large matrix by blocks of columns, which threads share.

    P A1 = L1 U1                                   getrf of the first block: all rows from the diagonal on
    for each block of columns:
        for each block of the others, a thread each:
            A2 = P A2                              laswp, left of the block as well
            U12 = L11^-1 A12                       `_substitute`
            A22 -= L21 U12                         gemm
            P A2 = L2 U2                           getrf, of the next block: while threads are at the others

Blocks depend on the sizes alone, so the factors do not depend on the number of threads.

A block has 32 columns, 64 from 768 on; of the others the next one comes first, and two go together. trsm of OpenBLAS
took half as long as gemm here, at a seventh of its speed: what is substituted is written out, four columns at a time.

Measured: two cores of a Zen 4, float64, LAPACK's getrf on one thread and this: 100 x 100 0.048 and 0.038 ms, 200 x 200
0.25 and 0.17, 300 x 300 0.69 and 0.37; 500 x 500 by blocks that waited for each other 1.8, now 1.4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.lax.linalg.matrices import letter
from pullback.util.lapack import integer

LEAST = 64  # rows and columns of a matrix: two blocks
LARGE = 768  # rows and columns from which blocks are wider, so that gemm has more to do at once
TOGETHER = 4  # columns that are substituted at once: what is read of the triangle serves all of them
STEP = 16  # rows after which those above are left out


def lu(ctx: Any, a: Any, dtype: np.dtype, swaps: Any) -> None:
    """Column-major a[n, m] becomes its factors; swaps[i] is the row, counted from 1, that row i is exchanged with."""
    b = ctx.b
    n, m = a.shape
    k = min(m, n)
    size = 32 if k < LARGE else 64
    wide = 2 * size
    kind, one = letter(dtype), dtype.type(1)
    flat = a.reshaped((n * m,))

    def at(row: Any, column: Any) -> Any:
        return flat.slice((column * m + row,), (1,))

    def width_of(start: Any) -> Any:
        return b.let(b.op("min", b.index(size), b.index(k) - start))

    def factor(start: Any, width: Any) -> None:
        info = ctx.local(integer(), (1,), "info")
        own = swaps.slice((start,), (1,))
        ctx.call_fortran(kind + "getrf", b.index(m) - start, width, at(start, start), m, own, info)

    with ctx.blas_alone():
        factor(b.index(0), width_of(b.index(0)))
        with b.loop(-(-k // size), "sequential", "block") as block:
            start = b.let(block * size)
            width = width_of(start)
            right = b.let(start + width)
            own = swaps.slice((start,), (1,))
            # Blocks to the right come first: they take longer. Those to the left are as wide as this one.
            beside = b.op("max", b.index(n) - right - size, b.index(0))
            count = b.let(b.floordiv(beside + (wide - 1), b.index(wide)) + b.op("min", b.index(n) - right, b.index(1)))
            with b.loop(count + block, "threads", "part", (("grain", 1),)) as part:
                is_right = b.lt(part, count)
                is_next = b.eq(part, b.index(0))
                first = b.select(is_next, right, right + size + (part - 1) * wide)
                first = b.let(b.select(is_right, first, (part - count) * size))
                most = b.select(b.op("and", is_right, b.lt(b.index(0), part)), b.index(wide), b.index(size))
                columns = b.let(b.op("min", most, b.index(n) - first))
                ctx.call_fortran(kind + "laswp", columns, at(start, first), m, 1, width, own, 1)
                with b.if_(is_right):
                    _substitute(ctx, flat, m, start, width, first, columns, size, dtype)
                    rest = b.let(b.index(m) - right)
                    here = b.let(b.op("min", right, b.index(m - 1)))  # without rows that are left: inside of the matrix
                    ctx.call_fortran(
                        kind + "gemm",
                        *("N", "N", rest, columns, width, -one, at(here, start), m, at(start, first), m, one),
                        *(at(here, first), m),
                    )
                    with b.if_(b.op("and", b.eq(part, b.index(0)), b.lt(right, b.index(k)))):
                        factor(right, width_of(right))
            with b.loop(width, "sequential", "i") as i:
                swap = ctx.load(swaps, (start + i,))
                ctx.store(swaps, (start + i,), swap + b.convert(start, swap.dtype))


def _substitute(
    ctx: Any, flat: Any, m: int, start: Any, width: Any, first: Any, columns: Any, size: int, dtype: np.dtype
) -> None:
    """Rows from `start` on of the columns from `first` on become L^-1 times them, L the unit triangle at `start`."""
    b = ctx.b
    held = ctx.local(dtype, (TOGETHER, size), "held")
    zero = b.const(held.dtype, 0)
    corner = b.let(start * m + start)

    def column(group: Any, q: int) -> Any:
        """Of a group of columns, of which the last begins early or has some of them twice."""
        return b.let(first + b.op("min", group * TOGETHER + q, columns - 1))

    with b.loop(b.floordiv(columns + (TOGETHER - 1), b.index(TOGETHER)), "sequential", "group") as group:
        places = [b.let(column(group, q) * m + start) for q in range(TOGETHER)]
        for q, place in enumerate(places):
            with b.loop(size, "vector", "i") as i:
                inside = b.lt(i, width)
                ctx.store(held, (q, i), b.select(inside, ctx.load(flat, (place + i,)), zero))
        for done in range(0, size, STEP):  # rows that are final by then
            count = b.op("max", b.op("min", width - done, b.index(STEP)), b.index(0))
            with b.loop(count, "sequential", "j") as step:
                j = b.let(step + done)
                factors = [b.let(b.neg(ctx.load(held, (q, j)))) for q in range(TOGETHER)]
                with b.loop(size - done, "vector", "i") as lane:
                    i = lane + done
                    below = b.let(b.op("and", b.lt(j, i), b.lt(i, width)))
                    lower = b.let(b.select(below, ctx.load(flat, (corner + j * m + i,)), zero))
                    before = [b.let(ctx.load(held, (q, i))) for q in range(TOGETHER)]
                    for q, (old, value) in enumerate(zip(before, factors)):
                        ctx.store(held, (q, i), b.select(below, b.add(old, b.term(lower, value)), old))
        for q, place in enumerate(places):
            with b.loop(width, "vector", "i") as i:
                ctx.store(flat, (place + i,), ctx.load(held, (q, i)))


__all__ = ["LEAST", "lu"]
