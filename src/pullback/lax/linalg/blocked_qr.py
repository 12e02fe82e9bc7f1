"""Orthogonal factors of one large matrix by blocks of columns, which threads share.

    A1 = H1 ... Hw R1 = (I - V T V^H) R1           geqrf of the first block, larft
    for each block of columns:
        for each part of the others, a thread each:
            A2 -= V (T^H (V^H A2))                 three times gemm
            A2 = (I - V T V^H) R2                  of the next block: while threads are at the others
    for each part of the columns of Q, a thread each:
        Q = (I - V1 T1 V1^H) ... (I - Vk Tk Vk^H)  from the last block that reaches these columns on

The reflectors V are kept with the ones on their diagonal and the zeros above it, so that all products are gemm: larfb
multiplies the triangles by trmm, which on narrow blocks of OpenBLAS takes as long as the rest. Blocks depend on the
sizes alone, so the factors do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.lax.linalg.matrices import is_complex, letter
from pullback.lax.linalg.stacks import Scratch, scratch
from pullback.util.lapack import integer

LEAST = 64  # columns of a matrix: two blocks
SIZE = 32  # columns of a block
WIDE = 96  # columns that meet a block of reflectors at once


def memory(m: int, n: int, dtype: np.dtype) -> list[Scratch]:
    """The scratch memory of `reflect`: reflectors, column-major, and the triangles T of their blocks."""
    k = min(m, n)
    return [scratch(dtype, k, m), scratch(dtype, -(-k // SIZE), SIZE, SIZE)]


def reflect(ctx: Any, a: Any, dtype: np.dtype, taus: Any, reflectors: Any, triangles: Any) -> None:
    """Of column-major a[n, m] the upper triangle becomes R; `generate` makes Q of the reflectors and triangles."""
    b = ctx.b
    n, m = a.shape
    k = min(m, n)
    kind = letter(dtype)
    flat = a.reshaped((n * m,))

    def factor(start: Any) -> None:
        """The block at `start`, whose other rows and columns have met all blocks before."""
        width = b.let(b.op("min", b.index(SIZE), b.index(k) - start))
        rows = b.let(b.index(m) - start)
        found, work = ctx.local(integer(), (1,), "found"), ctx.local(dtype, (SIZE * SIZE,), "work")
        own, corner = taus.slice((start,), (1,)), flat.slice((start * m + start,), (1,))
        ctx.call_fortran(kind + "geqrf", rows, width, corner, m, own, work, SIZE * SIZE, found)
        zero, one = b.const(a.dtype, 0), b.const(a.dtype, 1)
        with b.loop(width, "sequential", "j") as j, b.loop(rows, "vector", "i") as i:
            column = b.let(start + j)
            below = b.select(b.eq(i, j), one, ctx.load(a, (column, start + i)))
            ctx.store(reflectors, (column, start + i), b.select(b.lt(i, j), zero, below))
        triangle = triangles.at(b.floordiv(start, b.index(SIZE)))
        ctx.fill(triangle, zero)
        ctx.call_fortran(kind + "larft", "F", "C", rows, width, _corner(reflectors, start), m, own, triangle, SIZE)

    with ctx.blas_alone():
        factor(b.index(0))
        with b.loop(-(-k // SIZE), "sequential", "block") as block:
            start = b.let(block * SIZE)
            right = b.let(b.op("min", start + SIZE, b.index(k)))
            beside = b.op("max", b.index(n) - right - SIZE, b.index(0))
            count = b.floordiv(beside + (WIDE - 1), b.index(WIDE)) + b.op("min", b.index(n) - right, b.index(1))
            with b.loop(count, "threads", "part", (("grain", 1),)) as part:
                is_next = b.let(b.eq(part, b.index(0)))
                first = b.let(b.select(is_next, right, right + SIZE + (part - 1) * WIDE))
                most = b.select(is_next, b.index(SIZE), b.index(WIDE))
                columns = b.let(b.op("min", most, b.index(n) - first))
                _apply(ctx, a, dtype, reflectors, triangles, block, first, columns, turned=True)
                with b.if_(b.op("and", is_next, b.lt(right, b.index(k)))):
                    factor(right)


def generate(ctx: Any, q: Any, dtype: np.dtype, reflectors: Any, triangles: Any) -> None:
    """Column-major q[columns, m] becomes the first columns of the product of all blocks of reflectors."""
    b = ctx.b
    count, m = q.shape
    k = reflectors.shape[0]
    zero, one = b.const(q.dtype, 0), b.const(q.dtype, 1)
    parts = -(-count // WIDE)
    with ctx.blas_alone(), b.loop(parts, "threads", "part", (("grain", 1),)) as part:
        first = b.let((parts - 1 - part) * WIDE)  # those of most work come first
        columns = b.let(b.op("min", b.index(WIDE), b.index(count) - first))
        with b.loop(columns, "sequential", "j") as j, b.loop(m, "vector", "i") as i:
            ctx.store(q, (first + j, i), b.select(b.eq(i, first + j), one, zero))
        # What lies right of a block's first column is not changed by the blocks after that column.
        reached = b.let(b.floordiv(b.op("min", first + columns, b.index(k)) + (SIZE - 1), b.index(SIZE)))
        with b.loop(reached, "sequential", "block") as step:
            _apply(ctx, q, dtype, reflectors, triangles, b.let(reached - 1 - step), first, columns, turned=False)


def _apply(
    ctx: Any,
    x: Any,
    dtype: np.dtype,
    reflectors: Any,
    triangles: Any,
    block: Any,
    first: Any,
    columns: Any,
    *,
    turned: bool,
) -> None:
    """Columns of column-major x, WIDE at most, become (I - V T V^H) times them, or if `turned` with T^H."""
    b = ctx.b
    k, m = reflectors.shape
    kind, adjoint = letter(dtype), "C" if is_complex(dtype) else "T"
    start = b.let(block * SIZE)
    rows, width = b.let(b.index(m) - start), b.let(b.op("min", b.index(SIZE), b.index(k) - start))
    inner, scaled = (ctx.local(dtype, (WIDE, SIZE), name) for name in ("inner", "scaled"))
    v, own, t = _corner(reflectors, start), _corner(x, start, first), triangles.at(block)
    zero, one = dtype.type(0), dtype.type(1)
    gemm = kind + "gemm"
    ctx.call_fortran(gemm, adjoint, "N", width, columns, rows, one, v, m, own, m, zero, inner, SIZE)
    shape = width, columns, width
    ctx.call_fortran(gemm, adjoint if turned else "N", "N", *shape, one, t, SIZE, inner, SIZE, zero, scaled, SIZE)
    ctx.call_fortran(gemm, "N", "N", rows, columns, width, -one, v, m, scaled, SIZE, one, own, m)


def _corner(x: Any, row: Any, column: Any = None) -> Any:
    """Where an element of a column-major matrix lies, by default of the diagonal."""
    count, m = x.shape
    return x.reshaped((count * m,)).slice(((row if column is None else column) * m + row,), (1,))


__all__ = ["LEAST", "generate", "memory", "reflect"]
