"""The lowering of discrete Fourier transforms: an axis at a time, by the loops of `_fft_loops` where they apply."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pullback.lax.fourier.codelets import LARGEST_CODELET, Codelets, Number
from pullback.lax.fourier.loops import (
    LARGEST_LOCAL,
    SHORT,
    Transform,
    block_starts,
    block_width,
    half_circle,
    long_transform,
    split_length,
    work_length,
)
from pullback.loops.ir import Expr
from pullback.loops.ir.types import COMPLEX_OF, REAL_OF

# From here on the library's order of walking through memory is no worse.
LARGEST = 1 << 22


def generates(lengths: tuple[int, ...], real: bool) -> bool:
    """Whether the loops do transforms of these lengths over the last axes of an array."""
    for k, n in enumerate(reversed(lengths)):
        if k == 0 and real and n % 2 == 0:
            n //= 2
        if work_length(n) <= LARGEST_LOCAL:
            continue
        if k or n > LARGEST or split_length(n) is None:
            return False
    return True


# An element of a row: (number of the row, element) -> value.
Load = Callable[[Expr, Expr], Number]
Put = Callable[[Expr, Expr, Number], None]


def _loads(ctx: Any, storage: Any, n: int) -> Load:
    """Elements of rows of n complex numbers."""
    b = ctx.b

    def load(o: Expr, k: Expr) -> Number:
        z = b.let(b.load(storage.buffer, b.add(b.add(b.mul(o, b.index(n)), k), b.index(storage.offset))))
        return b.op("real", z), b.op("imag", z)

    return load


def _puts(ctx: Any, storage: Any, n: int) -> Put:
    b = ctx.b

    def put(o: Expr, k: Expr, z: Number) -> None:
        re, im = z
        whole = b.op("complex", re, b.const(re.dtype, 0.0) if im is None else im)
        b.store(storage.buffer, b.add(b.add(b.mul(o, b.index(n)), k), b.index(storage.offset)), whole)

    return put


def complex_passes(ctx: Any, source: Any, result: Any, axes: list[int], sign: int, scale: float) -> None:
    """Transforms along `axes`, one after the other, of a complex array that is not overwritten."""
    for k, axis in enumerate(axes):
        last = k == len(axes) - 1
        target = result if last else ctx.temporary(source.dtype, source.shape, "spectrum")
        complex_axis(ctx, source, target, axis, sign, scale if last else 1.0)
        source = target


def complex_axis(ctx: Any, source: Any, target: Any, axis: int, sign: int, scale: float) -> None:
    """target = the transform of source along one axis, times `scale`; both row-major, of one shape."""
    b, shape = ctx.b, source.shape
    n, outer, inner = shape[axis], math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    dtype = REAL_OF[source.dtype]
    load, put = _loads(ctx, source, n * inner), _puts(ctx, target, n * inner)

    def flat(row: Expr, q: Expr) -> Expr:
        return b.add(b.mul(row, b.index(inner)), q)

    if n <= LARGEST_CODELET:
        codelets = Codelets(b, dtype, sign)
        with ctx.loops((outer, inner)) as (o, q):
            values = [codelets.pinned(load(o, flat(b.index(k), q))) for k in range(n)]
            for k, z in enumerate(codelets.dft(values)):
                put(o, flat(b.index(k), q), codelets.scaled(z, scale))
    elif inner == 1:
        _rows(ctx, outer, n, dtype, sign, load, put, scale)
    else:
        width = block_width(n, inner, dtype)
        transform = Transform(ctx, n, dtype, sign, width)
        with b.loop(outer) as o, b.loop(-(-inner // width)) as block:
            start = block_starts(b, block, inner, width)
            transform.run(
                lambda row, q: load(o, flat(row, b.add(start, q))),
                lambda row, q, z: put(o, flat(row, b.add(start, q)), z),
                scale=scale,
            )


def _rows(ctx: Any, rows: int, n: int, dtype: str, sign: int, load: Load, put: Put, scale: float) -> None:
    """The transforms of rows that lie one after the other."""
    if work_length(n) > LARGEST_LOCAL:
        long_transform(ctx, rows, n, dtype, sign, load, put, scale)
        return
    if rows == 1 and n != work_length(n) <= SHORT:
        zero = ctx.b.index(0)
        transform = Transform(ctx, n, dtype, sign, alone=True)
        transform.run(lambda k, _: load(zero, k), lambda k, _, z: put(zero, k, z), scale=scale)
        return
    with ctx.b.loop(rows) as o:
        Transform(ctx, n, dtype, sign).run(lambda k, _: load(o, k), lambda k, _, z: put(o, k, z), scale=scale)


def real_axis(ctx: Any, source: Any, target: Any) -> None:
    """target[..., n // 2 + 1] = the first half of the transform of the real source[..., n] along the last axis."""
    b, n, rows = ctx.b, source.shape[-1], math.prod(source.shape[:-1])
    dtype, half = source.dtype, n // 2
    put = _puts(ctx, target, half + 1)

    def real(o: Expr, k: Expr) -> Expr:
        return b.let(b.load(source.buffer, b.add(b.add(b.mul(o, b.index(n)), k), b.index(source.offset))))

    def pairs(o: Expr, k: Expr) -> Number:
        at = b.mul(k, b.index(2))
        return real(o, at), real(o, b.add(at, b.index(1)))

    if n <= LARGEST_CODELET:
        with ctx.loops((rows,)) as (o,):
            values = Codelets(b, dtype, -1).dft([(real(o, b.index(k)), None) for k in range(n)])
            for k in range(half + 1):
                put(o, b.index(k), values[k])
        return
    length, load = (half, pairs) if n % 2 == 0 else (n, lambda o, k: (real(o, k), None))
    finish = _untangle if n % 2 == 0 else _first_half
    transform = Transform(ctx, length, dtype, -1)
    if work_length(length) > LARGEST_LOCAL:
        whole = ctx.temporary(COMPLEX_OF[dtype], (rows, length), "whole")
        long_transform(ctx, rows, length, dtype, -1, load, _puts(ctx, whole, length), 1.0)
        again = _loads(ctx, whole, length)
        with b.loop(rows) as o:
            finish(transform, lambda k: again(o, k), n, lambda k, z: put(o, k, z))
        return
    with b.loop(rows) as o:
        planes = transform.result(lambda k, _: load(o, k))
        finish(transform, lambda k: planes.load(b, k), n, lambda k, z: put(o, k, z))


def _first_half(transform: Transform, z: Callable[[Expr], Number], n: int, put: Callable[[Expr, Number], None]) -> None:
    b = transform.b
    with b.loop(n // 2 + 1, "vector") as k:
        put(k, z(k))


def _untangle(transform: Transform, z: Callable[[Expr], Number], n: int, put: Callable[[Expr, Number], None]) -> None:
    """From Z = E + i O, with E and O the transforms of even and odd elements: X[k] = E[k] + w^k O[k]."""
    b, c, half = transform.b, transform.codelets, n // 2
    re, im = c.both(z(b.index(0)))
    put(b.index(0), (b.add(re, im), None))
    put(b.index(half), (b.sub(re, im), None))
    table = transform.table(half_circle(n, -1, transform.dtype))
    with b.loop(half - 1, "vector") as i:
        k = b.add(i, b.index(1))
        (ar, ai), (br, bi) = c.both(z(k)), c.both(z(b.sub(b.index(half), k)))
        even = c.pinned(c.scaled((b.add(ar, br), b.sub(ai, bi)), 0.5))
        odd = c.pinned(c.scaled((b.add(ai, bi), b.sub(br, ar)), 0.5))  # (Z[k] - conj Z[half - k]) / 2i
        put(k, c.add(even, c.times(odd, *table.load(b, k))))


def real_axis_back(ctx: Any, source: Any, target: Any, scale: float) -> None:
    """target[..., n] = the real inverse transform of the half spectrum source[..., n // 2 + 1], times `scale`.

    The imaginary parts of elements 0 and, for an even n, n / 2 are taken as zero.
    """
    b, n, rows = ctx.b, target.shape[-1], math.prod(target.shape[:-1])
    dtype, half, paired = target.dtype, n // 2, n % 2 == 0
    given = _loads(ctx, source, half + 1)
    c = Codelets(b, dtype, 1)

    def put(o: Expr, k: Expr, value: Expr) -> None:
        b.store(target.buffer, b.add(b.add(b.mul(o, b.index(n)), k), b.index(target.offset)), value)

    if n <= LARGEST_CODELET:
        with ctx.loops((rows,)) as (o,):
            values = [given(o, b.index(k)) for k in range(half + 1)]
            values[0] = values[0][0], None
            if paired:
                values[half] = values[half][0], None
            values += [c.pinned((re, None if im is None else b.neg(im))) for re, im in values[n - half - 1 : 0 : -1]]
            for k, z in enumerate(c.dft(values)):
                put(o, b.index(k), c.scaled(z, scale)[0])
        return
    length = half if paired else n

    def store(o: Expr, k: Expr, z: Number) -> None:
        if not paired:
            put(o, k, z[0])
            return
        at = b.mul(k, b.index(2))
        for step, part in enumerate(c.both(z)):
            put(o, b.add(at, b.index(step)), part)

    transform = Transform(ctx, length, dtype, 1)
    prepare = _tangle if paired else _mirror
    if work_length(length) > LARGEST_LOCAL:
        whole = ctx.temporary(COMPLEX_OF[dtype], (rows, length), "whole")
        ahead = _puts(ctx, whole, length)
        with b.loop(rows) as o:
            prepare(transform, lambda k: given(o, k), n, lambda k, z: ahead(o, k, z))
        long_transform(ctx, rows, length, dtype, 1, _loads(ctx, whole, length), store, scale)
        return
    with b.loop(rows) as o:
        planes = transform.planes(1)
        prepare(transform, lambda k: given(o, k), n, lambda k, z: planes.store(b, k, z))
        transform.run(transform.from_planes(1), lambda k, _, z: store(o, k, z), 0, scale)


def _tangle(transform: Transform, x: Callable[[Expr], Number], n: int, put: Callable[[Expr, Number], None]) -> None:
    """2 Z = 2 (E + i O) from X[k] = E[k] + w^k O[k], where E and O are those of real elements."""
    b, c, half = transform.b, transform.codelets, n // 2
    first, last = x(b.index(0))[0], x(b.index(half))[0]
    put(b.index(0), (b.add(first, last), b.sub(first, last)))
    table = transform.table(half_circle(n, 1, transform.dtype))
    with b.loop(half - 1, "vector") as i:
        k = b.add(i, b.index(1))
        (ar, ai), (br, bi) = c.both(x(k)), c.both(x(b.sub(b.index(half), k)))
        even = c.pinned((b.add(ar, br), b.sub(ai, bi)))
        odd = c.pinned(c.times(c.pinned((b.sub(ar, br), b.add(ai, bi))), *table.load(b, k)))
        put(k, c.add(even, c.times_i(odd, 1)))


def _mirror(transform: Transform, x: Callable[[Expr], Number], n: int, put: Callable[[Expr, Number], None]) -> None:
    """The whole spectrum, of an odd length, from its half."""
    b, c = transform.b, transform.codelets
    put(b.index(0), (x(b.index(0))[0], None))
    with b.loop(n // 2, "vector") as i:
        k = b.add(i, b.index(1))
        re, im = c.both(x(k))
        put(k, (re, im))
        put(b.sub(b.index(n), k), (re, b.neg(im)))


__all__ = ["complex_passes", "generates", "real_axis", "real_axis_back"]
