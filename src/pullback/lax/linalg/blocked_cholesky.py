"""The Cholesky factor of one large matrix by LAPACK and BLAS on blocks, which threads share.

    for each block of columns:   L11 L11^H = A11           potrf, on one thread
                                 L21 = A21 L11^-H          trsm, a block of rows each
                                 A22 -= L21 L21^H          herk on the diagonal, gemm below, in pieces of equal work

Blocks depend on the size alone, so the factor does not depend on the number of threads.

Matrices of 384 rows or more are done so, with blocks of 128. Measured: LAPACK's own takes 13.1 ms of one thread
for 1000 x 1000 float64, the blocks 14.1 of two together; blocks of 64 took 15.9.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.lax.linalg.matrices import is_complex, letter

BLOCK = 128  # rows and columns of a block: a third of the second cache in float64
LEAST = 3 * BLOCK  # rows of a matrix: below, one thread does it as fast


def cholesky(ctx: Any, a: Any, dtype: np.dtype, info: Any) -> None:
    """Row-major a[n, n] becomes its factor, in the lower triangle; info[0] is not zero if it has none."""
    b = ctx.b
    n = a.shape[0]
    kind, complex_ = letter(dtype), is_complex(dtype)
    turned = "C" if complex_ else "T"
    one, real = dtype.type(1), dtype.type(1).real
    flat = a.reshaped((n * n,))
    found = ctx.local(np.int32, (1,), "found")

    def at(row: Any, column: Any) -> Any:
        return flat.slice((row * n + column,), (1,))

    def extent(start: Any) -> Any:
        """Rows of the block that begins there."""
        return b.let(b.op("min", b.index(BLOCK), b.index(n) - start))

    # LAPACK sees transposes: our lower triangles are its upper ones, of the conjugates.
    ctx.store(info, (0,), 0)
    with ctx.blas_alone(), b.loop(-(-n // BLOCK), "sequential", "block") as block:
        start = b.let(block * BLOCK)
        width = extent(start)
        ctx.call_fortran(kind + "potrf", "U", width, at(start, start), n, found)
        ctx.store(info, (0,), b.op("max", ctx.load(info, (0,)), ctx.load(found, (0,))))
        below = b.let(start + BLOCK)
        count = b.let(b.index(-(-n // BLOCK) - 1) - block)
        with b.loop(count, "threads", "part", (("grain", 1),)) as part:
            first = b.let(below + part * BLOCK)
            rows = extent(first)
            ctx.call_fortran(
                kind + "trsm", "L", "U", turned, "N", width, rows, one, at(start, start), n, at(first, start), n
            )
        with b.loop(count * count, "threads", "piece", (("grain", 1),)) as piece:
            i, j = b.let(b.floordiv(piece, count)), b.let(b.floormod(piece, count))
            top = b.let(below + b.op("max", i, j) * BLOCK)
            left = b.let(below + b.op("min", i, j) * BLOCK)
            rows = extent(top)
            with b.if_(b.eq(i, j)) as branch:
                ctx.call_fortran(
                    kind + ("herk" if complex_ else "syrk"),
                    *("U", turned, rows, width, -real, at(top, start), n, real, at(top, top), n),
                )
            with branch.otherwise():
                # Block (i, j) below the diagonal is cut into an upper half, the piece (i, j), and a lower one, (j, i).
                half = b.let(b.select(b.lt(i, j), b.index(BLOCK // 2), b.index(0)))
                high = b.let(b.op("min", b.index(BLOCK // 2), b.op("max", rows - half, b.index(0))))
                here = b.let(top + b.op("min", half, rows - 1))  # of a lower half without rows: inside of the matrix
                ctx.call_fortran(
                    kind + "gemm",
                    *(turned, "N", BLOCK, high, width, -one, at(left, start), n, at(here, start), n, one),
                    *(at(here, left), n),
                )
