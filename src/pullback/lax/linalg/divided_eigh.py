"""Eigenvalues and vectors of one large Hermitian matrix, by divide and conquer whose parts threads share.

    A = Q T Q^H                                    sytrd, on one thread
    T = diag(T1, T2) + rho u u^T                   each half by stedc, a thread each; laed1 makes one of both
    V = Q V_T                                      ormtr, some columns each

How it is divided depends on the size alone, so the vectors do not depend on the number of threads.

Measured: two cores of a Zen 5, syevd and this: 500 x 500 float64 16.1 and 15.0 ms, 1000 x 1000 89 and 74, float32 53
and 46.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.lax.linalg.matrices import is_complex, letter, real_of
from pullback.lax.linalg.stacks import Scratch, fill_nan, is_finite, scratch
from pullback.util.lapack import integer

LEAST = 384  # rows of a matrix: of fewer, LAPACK's driver is as soon done
WIDE = 256  # columns, about, that are multiplied by Q at once: each call of ormtr makes its own triangles


def _parts(n: int) -> int:
    return max(2, min(8, n // WIDE))


def memory(n: int, dtype: np.dtype) -> list[Scratch]:
    """The scratch memory of `eigh`."""
    real = real_of(dtype)
    return [
        scratch(dtype, n, n),
        scratch(dtype, n),
        scratch(dtype, 64 * n),
        scratch(real, 2, n),
        scratch(real, n, n),
        scratch(real, n * n + 4 * n + 16),
        scratch(integer(), n),
        scratch(integer(), 8 * n + 16),
        scratch(integer(), 2),
        scratch(dtype, _parts(n), 32 * -(-n // _parts(n)) + 4160),  # that ormtr wants for blocks of 32
        *([scratch(dtype, n, n)] if is_complex(dtype) else []),
    ]


def eigh(ctx: Any, source: Any, triangle: str, dtype: np.dtype, vectors: Any, values: Any, memory: Any) -> None:
    """values[n] ascending and vectors[n, n] of source[n, n], of which one triangle is read, "L" or "U" of LAPACK's;
    NaN where the matrix is not finite.
    """
    b = ctx.b
    a, taus, work, tridiagonal, q, reals, order, integers, infos, own, *rest = memory
    n = source.shape[0]
    kind, real_kind, complex_ = letter(dtype), letter(real_of(dtype)), is_complex(dtype)
    kinds = ("lanhe", "hetrd", "unmtr") if complex_ else ("lansy", "sytrd", "ormtr")
    norm_of, reduce, multiply = (kind + name for name in kinds)
    d, e = tridiagonal.at(0), tridiagonal.at(1)
    real = d.dtype
    # As in LAPACK's drivers: of larger numbers, squares overflow.
    limits = np.finfo(real_of(dtype))
    least = np.sqrt(limits.tiny / limits.eps)
    low, high = b.const(real, float(least)), b.const(real, float(1 / least))

    ctx.copy(a, source.transposed((1, 0)))
    norm = b.let(ctx.call_fortran(norm_of, "M", triangle, n, a, n, reals, result=real))
    is_small = b.op("and", b.lt(b.const(real, 0), norm), b.lt(norm, low))
    is_large = b.op("and", b.lt(high, norm), b.lt(norm, b.const(real, float("inf"))))
    bound = b.let(b.select(is_small, low, b.select(is_large, high, norm)))
    with b.if_(b.op("or", is_small, is_large)):
        ctx.call_fortran(kind + "lascl", triangle, 0, 0, norm, bound, n, n, a, n, infos)
    ctx.call_fortran(reduce, triangle, n, a, n, d, e, taus, work, work.size, infos)
    ctx.store(e, (n - 1,), 0)
    with ctx.if_(is_finite(ctx, tridiagonal)) as branch:
        size_of = _to_one(ctx, tridiagonal)
        cut = n // 2
        rho = b.let(ctx.load(e, (cut - 1,)))
        for place in (cut - 1, cut):
            ctx.store(d, (place,), b.sub(ctx.load(d, (place,)), b.op("abs", rho)))
        ctx.fill(q, b.const(real, 0))
        most = n - cut
        room, counts = 1 + 4 * most + most * most, 3 + 5 * most
        flat = q.reshaped((n * n,))
        with b.loop(2, "threads", "half", (("grain", 1),)) as half:
            first, size = b.let(half * cut), b.let(b.select(b.eq(half, b.index(0)), b.index(cut), b.index(most)))
            ctx.call_fortran(
                *(real_kind + "stedc", "I", size, d.slice((first,), (1,)), e.slice((first,), (1,))),
                *(flat.slice((first * (n + 1),), (1,)), n, reals.slice((half * room,), (1,)), room),
                *(integers.slice((half * counts,), (1,)), counts, infos.slice((half,), (1,))),
            )
            with b.loop(size, "vector", "i") as i:
                ctx.store(order, (first + i,), b.convert(i + 1, order.dtype))
        failed = b.op("or", b.op("ne", ctx.load(infos, (0,)), 0), b.op("ne", ctx.load(infos, (1,)), 0))
        with b.if_(failed) as worse:
            fill_nan(ctx, [vectors, values])
        with worse.otherwise():
            ctx.call_fortran(real_kind + "laed1", n, d, q, n, order, rho, cut, reals, integers, infos)
            found = q
            if complex_:
                found = rest[0]
                with ctx.loops((n, n)) as (i, j):
                    ctx.store(found, (i, j), b.convert(ctx.load(q, (i, j)), found.dtype))
            parts = _parts(n)
            columns = -(-n // parts)
            shared = found.reshaped((n * n,))
            with b.loop(parts, "threads", "part", (("grain", 1),)) as part:
                first = b.let(part * columns)
                count = b.let(b.op("min", b.index(columns), b.index(n) - first))
                corner, room = shared.slice((first * n,), (1,)), own.at(part)
                ctx.call_fortran(
                    multiply,
                    "L",
                    triangle,
                    "N",
                    n,
                    count,
                    a,
                    n,
                    taus,
                    corner,
                    n,
                    room,
                    room.size,
                    infos.slice((1,), (1,)),
                )
            back = b.select(b.op("eq", norm, bound), b.const(real, 1), b.op("div", norm, bound))
            factor = b.let(b.mul(size_of, back))
            with ctx.loops((n,)) as (i,):
                place = b.sub(b.convert(ctx.load(order, (i,)), "i64"), 1)
                ctx.store(values, (i,), b.mul(ctx.load(d, (place,)), factor))
            with ctx.loops((n, n)) as (i, j):
                place = b.sub(b.convert(ctx.load(order, (j,)), "i64"), 1)
                ctx.store(vectors, (i, j), ctx.load(found, (place, i)))
            with ctx.if_(b.op("ne", ctx.load(infos, (0,)), 0)):
                fill_nan(ctx, [vectors, values])
    with branch.otherwise():
        fill_nan(ctx, [vectors, values])


def _to_one(ctx: Any, x: Any) -> Any:
    """The power of two below the largest element, by which all are divided: what laed1 leaves out is small beside 1."""
    b = ctx.b
    flat = x.reshaped((x.size,))
    integer, kept = ("i32", 0x7F800000) if x.dtype == "f32" else ("i64", 0x7FF0000000000000)
    with b.reduce(x.size, b.const(x.dtype, 0), "max") as r:
        r.update(b.op("max", r.var, b.op("abs", ctx.load(flat, (r.i,)))))
    power = b.let(b.bitcast(b.op("and", b.bitcast(r.result, integer), b.const(integer, kept)), x.dtype))
    one = b.const(x.dtype, 1)
    power = b.let(b.select(b.op("eq", power, b.const(x.dtype, 0)), one, power))
    inverse = b.let(b.op("div", one, power))
    with b.loop(x.size, "vector", "i") as i:
        ctx.store(flat, (i,), b.mul(ctx.load(flat, (i,)), inverse))
    return power


__all__ = ["LEAST", "eigh", "memory"]
