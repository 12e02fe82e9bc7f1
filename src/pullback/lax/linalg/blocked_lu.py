"""The LU factors of one large matrix by LAPACK and BLAS on blocks, which threads share.

    for each block of columns:   P A1 = L1 U1                     getrf, on one thread, of all rows from the diagonal on
        for each block of the others, a thread each:
                                 A2 = P A2                        laswp, left of the block as well
                                 U12 = L11^-1 A12                 trsm
                                 A22 -= L21 U12                   gemm

Blocks depend on the sizes alone, so the factors do not depend on the number of threads.

Blocks have 64 columns, 128 from 768 on. Measured: 500 x 500 float64 takes 3.8 ms of two threads together and 3.7 of one
by LAPACK, 1000 x 1000 32.7 and 30.4 (with blocks of 64: 38).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.lax.linalg.matrices import letter

LEAST = 384  # rows and columns of a matrix: below, one thread does it as fast
LARGE = 768  # rows and columns from which blocks are wider, of which fewer are copied by each gemm


def lu(ctx: Any, a: Any, dtype: np.dtype, swaps: Any) -> None:
    """Column-major a[n, m] becomes its factors; swaps[i] is the row, counted from 1, that row i is exchanged with."""
    b = ctx.b
    n, m = a.shape
    k = min(m, n)
    size = 64 if k < LARGE else 128
    kind, one = letter(dtype), dtype.type(1)
    flat = a.reshaped((n * m,))
    info = ctx.local(np.int32, (1,), "info")

    def at(row: Any, column: Any) -> Any:
        return flat.slice((column * m + row,), (1,))

    with ctx.blas_alone(), b.loop(-(-k // size), "sequential", "block") as block:
        start = b.let(block * size)
        width = b.let(b.op("min", b.index(size), b.index(k) - start))
        right = b.let(start + width)
        own = swaps.slice((start,), (1,))
        ctx.call_fortran(kind + "getrf", b.index(m) - start, width, at(start, start), m, own, info)
        # Blocks to the right come first: they take longer. Those to the left are as wide as this one.
        count = b.let(b.floordiv(b.index(n + size - 1) - right, b.index(size)))
        with b.loop(count + block, "threads", "part", (("grain", 1),)) as part:
            is_right = b.lt(part, count)
            first = b.let(b.select(is_right, right + part * size, (part - count) * size))
            columns = b.let(b.op("min", b.index(size), b.index(n) - first))
            ctx.call_fortran(kind + "laswp", columns, at(start, first), m, 1, width, own, 1)
            with b.if_(is_right):
                corner = at(start, start)
                ctx.call_fortran(kind + "trsm", "L", "L", "N", "U", width, columns, one, corner, m, at(start, first), m)
                rest = b.let(b.index(m) - right)
                here = b.let(b.op("min", right, b.index(m - 1)))  # without rows that are left: inside of the matrix
                ctx.call_fortran(
                    kind + "gemm",
                    *("N", "N", rest, columns, width, -one, at(here, start), m, at(start, first), m, one),
                    *(at(here, first), m),
                )
        with b.loop(width, "sequential", "i") as i:
            swap = ctx.load(swaps, (start + i,))
            ctx.store(swaps, (start + i,), swap + b.convert(start, "i32"))


__all__ = ["LEAST", "lu"]
