"""The Cholesky factor of one large matrix by LAPACK and BLAS on blocks, which threads share.

    L11 L11^H = A11                                potrf, on one thread
    for each block of columns:
        L21 = A21 L11^-H                           trsm, a block of rows each
        A22 -= L21 L21^H                           herk on the diagonal, gemm below, in pieces of equal work;
                                                   potrf of the next block, while threads are at the others

Blocks depend on the size alone, so the factor does not depend on the number of threads.

They have 64 rows, 128 from 512 on. Measured: two cores of a Zen 4, float64, LAPACK's own on one thread and this: 200 x
200 0.174 and 0.148 ms, 300 x 300 0.48 and 0.42; 500 x 500 with blocks of 128 that waited for each other 1.8, now 1.6.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.lax.linalg.matrices import is_complex, letter

LEAST = 192  # rows of a matrix: below, one thread does it as fast
LARGE = 512  # rows from which blocks are wider, so that gemm has more to do at once


def cholesky(ctx: Any, a: Any, dtype: np.dtype, info: Any) -> None:
    """Row-major a[n, n] becomes its factor, in the lower triangle; info[0] is not zero if it has none."""
    b = ctx.b
    n = a.shape[0]
    size = 64 if n < LARGE else 128
    kind, complex_ = letter(dtype), is_complex(dtype)
    turned = "C" if complex_ else "T"
    one, real = dtype.type(1), dtype.type(1).real
    flat = a.reshaped((n * n,))

    def at(row: Any, column: Any) -> Any:
        return flat.slice((row * n + column,), (1,))

    def extent(start: Any) -> Any:
        """Rows of the block that begins there."""
        return b.let(b.op("min", b.index(size), b.index(n) - start))

    def factor(start: Any) -> None:
        found = ctx.local(np.int32, (1,), "found")
        # LAPACK sees transposes: our lower triangles are its upper ones, of the conjugates.
        ctx.call_fortran(kind + "potrf", "U", extent(start), at(start, start), n, found)
        ctx.store(info, (0,), b.op("max", ctx.load(info, (0,)), ctx.load(found, (0,))))

    def step(block: Any) -> None:
        start = b.let(block * size)
        width = extent(start)
        below = b.let(start + size)
        count = b.let(b.index(-(-n // size) - 1) - block)
        with b.loop(count, "threads", "part", (("grain", 1),)) as part:
            first = b.let(below + part * size)
            rows = extent(first)
            ctx.call_fortran(
                kind + "trsm", "L", "U", turned, "N", width, rows, one, at(start, start), n, at(first, start), n
            )
        with b.loop(count * count, "threads", "piece", (("grain", 1),)) as piece:
            i, j = b.let(b.floordiv(piece, count)), b.let(b.floormod(piece, count))
            top = b.let(below + b.op("max", i, j) * size)
            left = b.let(below + b.op("min", i, j) * size)
            rows = extent(top)
            with b.if_(b.eq(i, j)) as branch:
                ctx.call_fortran(
                    kind + ("herk" if complex_ else "syrk"),
                    *("U", turned, rows, width, -real, at(top, start), n, real, at(top, top), n),
                )
                with b.if_(b.eq(piece, b.index(0))):
                    factor(top)
            with branch.otherwise():
                # Block (i, j) below the diagonal is cut into an upper half, the piece (i, j), and a lower one, (j, i).
                half = b.let(b.select(b.lt(i, j), b.index(size // 2), b.index(0)))
                high = b.let(b.op("min", b.index(size // 2), b.op("max", rows - half, b.index(0))))
                here = b.let(top + b.op("min", half, rows - 1))  # of a lower half without rows: inside of the matrix
                ctx.call_fortran(
                    kind + "gemm",
                    *(turned, "N", size, high, width, -one, at(left, start), n, at(here, start), n, one),
                    *(at(here, left), n),
                )

    ctx.store(info, (0,), 0)
    with ctx.blas_alone():
        factor(b.index(0))
        with b.loop(-(-n // size) - 1, "sequential", "block") as block:
            step(block)
