"""The Cholesky factor of one large matrix by blocks, which threads share.

    L11 L11^H = A11                                potrf, on one thread
    for each block of columns:
        L21 = A21 L11^-H                           `substitute`, some rows each
        A22 -= L21 L21^H                           gemm, a block of rows each, up to the diagonal;
                                                   potrf of the next block, while threads are at the others

Blocks depend on the size alone, so the factor does not depend on the number of threads.

trsm of OpenBLAS took as long as all else: what is substituted is written out, eight rows at a time, which read L11^T
along its rows. Measured: two cores of a Zen 5, float64, with trsm and pieces of 128 x 64 and this: 200 x 200 94 and 73
us, 500 x 500 0.76 and 0.58 ms, 1000 x 1000 4.1 and 3.7.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.lax.linalg.matrices import is_complex, letter
from pullback.lax.records.nests import loops
from pullback.util.lapack import integer

LEAST = 192  # rows of a matrix: below, one thread does it as fast, of a real one for longer (lane_cholesky.py)
LARGE = 768  # rows from which blocks are wider, so that gemm has more to do at once
TOGETHER = 8  # rows that are substituted at once: what is read of the triangle serves all of them
ROWS = 32  # rows that a thread substitutes at a time
STEP = 16  # columns after which those before are left out
ACROSS = 4  # blocks of columns that a thread subtracts from at a time


def cholesky(ctx: Any, a: Any, dtype: np.dtype, info: Any) -> None:
    """Row-major a[n, n] becomes its factor in the lower triangle; info[0] is not zero if it has none."""
    b = ctx.b
    n = a.shape[0]
    size = 64 if n < LARGE else 128
    kind, complex_ = letter(dtype), is_complex(dtype)
    one = dtype.type(1)
    flat = a.reshaped((n * n,))
    triangle = ctx.temporary(a.dtype, (size, size), "triangle")  # L11^H above its diagonal
    scales = ctx.temporary(a.dtype, (size,), "scales")  # 1 / the diagonal

    def at(row: Any, column: Any) -> Any:
        return flat.slice((row * n + column,), (1,))

    def factor(start: Any) -> None:
        found = ctx.local(integer(), (1,), "found")
        # LAPACK sees transposes: our lower triangles are its upper ones, of the conjugates.
        width = b.let(b.op("min", b.index(size), b.index(n) - start))
        ctx.call_fortran(kind + "potrf", "U", width, at(start, start), n, found)
        ctx.store(info, (0,), b.op("max", ctx.load(info, (0,)), ctx.load(found, (0,))))
        with b.if_(b.lt(start + size, b.index(n))):

            def turn(index: Any) -> None:
                j, i = index
                value = ctx.load(flat, ((start + i) * n + start + j,))
                ctx.store(triangle, (j, i), b.op("conj", value) if complex_ else value)

            loops(b, (size, size), turn)
            with b.loop(size, "vector", "j") as j:
                ctx.store(scales, (j,), b.op("div", b.const(a.dtype, 1), ctx.load(flat, ((start + j) * (n + 1),))))

    def substitute(start: Any, first: Any, rows: Any) -> None:
        """Rows from `first` on, in the columns of the block at `start`, become their product with L11^-H."""
        held = ctx.local(dtype, (TOGETHER, size), "held")
        with b.loop(b.floordiv(rows + (TOGETHER - 1), b.index(TOGETHER)), "sequential", "group") as group:
            # The last group has its last row several times.
            places = [b.let((first + b.op("min", group * TOGETHER + q, rows - 1)) * n + start) for q in range(TOGETHER)]
            for q, place in enumerate(places):
                with b.loop(size, "vector", "i") as i:
                    ctx.store(held, (q, i), ctx.load(flat, (place + i,)))
            for done in range(0, size, STEP):
                with b.loop(STEP, "sequential", "j") as step:
                    j = b.let(step + done)
                    scale = b.let(b.neg(ctx.load(scales, (j,))))
                    factors = [b.let(b.mul(ctx.load(held, (q, j)), scale)) for q in range(TOGETHER)]
                    with b.loop(size - done, "vector", "i") as lane:
                        i = lane + done
                        after = b.let(b.lt(j, i))
                        lower = b.let(ctx.load(triangle, (j, i)))
                        before = [b.let(ctx.load(held, (q, i))) for q in range(TOGETHER)]
                        for q, (old, value) in enumerate(zip(before, factors)):
                            ctx.store(held, (q, i), b.select(after, b.add(old, b.term(lower, value)), old))
            for q, place in enumerate(places):
                with b.loop(size, "vector", "i") as i:
                    ctx.store(flat, (place + i,), b.mul(ctx.load(held, (q, i)), ctx.load(scales, (i,))))

    def step(block: Any) -> None:
        start = b.let(block * size)
        below = b.let(start + size)
        rest = b.let(b.index(n) - below)
        with b.loop(b.floordiv(rest + (ROWS - 1), b.index(ROWS)), "threads", "part", (("grain", 1),)) as part:
            first = b.let(part * ROWS)
            substitute(start, b.let(below + first), b.let(b.op("min", b.index(ROWS), rest - first)))
        count = b.let(b.floordiv(rest + (size - 1), b.index(size)))
        across = b.let(b.floordiv(count + (ACROSS - 1), b.index(ACROSS)))
        with b.loop(count * across, "threads", "piece", (("grain", 1),)) as piece:
            # The next block comes first, then those with most columns.
            number, left = b.let(b.floordiv(piece, across)), b.let(b.floormod(piece, across) * (ACROSS * size))
            i = b.let(b.select(b.eq(number, b.index(0)), b.index(0), count - number))
            top = b.let(i * size)
            rows = b.let(b.op("min", b.index(size), rest - top))
            columns = b.let(b.op("min", b.index(ACROSS * size), top + rows - left))
            with b.if_(b.lt(b.index(0), columns)):
                ctx.call_fortran(
                    kind + "gemm",
                    *("C" if complex_ else "T", "N", columns, rows, size, -one, at(below + left, start), n),
                    *(at(below + top, start), n, one, at(below + top, below + left), n),
                )
            with b.if_(b.eq(piece, b.index(0))):
                factor(below)

    ctx.store(info, (0,), 0)
    with ctx.blas_alone():
        factor(b.index(0))
        with b.loop(-(-n // size) - 1, "sequential", "block") as block:
            step(block)


__all__ = ["LEAST", "cholesky"]
