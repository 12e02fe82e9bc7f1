"""Jacobi's method for singular values of many small matrices at once, one in each lane (Golub and Van Loan, 8.6.3).

Rotations make two columns orthogonal, one pair after the other. All lanes go through the same pairs, so there is
nothing to choose, until no lane has anything left to do; matrices that are done early turn by angles of zero. Errors
are those of LAPACK or less, and small singular values keep more of their digits.

Matrices up to 4 x 4 are done so, as quick as by QR steps (bidiagonal_qr.py) and compiled in 0.8 of the time. Of those
of 8 x 8 these take 0.6 of the time, of 16 x 16 0.45.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pullback.lax.linalg.small_matrices import Block, Held, Index, Lanes, Rounds, after, fold, in_blocks, number, repeat
from pullback.lax.linalg.spectra import LEFT, POISON, SCALE, add_to_all, limits, prepare, rank
from pullback.loops.ir import ITEMSIZE

MOST_SVD = 4  # rows and columns, at most
SWEEPS = 16  # at most; seldom more than 8 are made

Entry = Callable[[Index, Index], tuple[Index, Index]]


def _along_columns(p: Index, k: Index) -> tuple[Index, Index]:
    return k, p


def _along_rows(p: Index, k: Index) -> tuple[Index, Index]:
    return p, k


def _unit(b: Any, v: Lanes, n: int) -> None:
    one, zero = b.const(v.work.dtype, 1.0), b.const(v.work.dtype, 0.0)

    def row(i: Index) -> None:
        def element(j: Index) -> None:
            v[i, j] = b.select(b.op("eq", number(b, i), number(b, j)), one, zero)

        repeat(b, 0, n, element)

    repeat(b, 0, n, row)


def _pairs(b: Any, n: int, body: Callable[[Index, Index], None]) -> None:
    """body(p, q) for p < q; always a loop, as rotations are much code."""
    if n == 1:
        return
    with b.loop(n - 1, "sequential") as p:
        repeat(b, after(b, p), n, lambda q: body(p, q))


def _angle(b: Any, height: Any, off: Any) -> tuple[Any, Any, Any]:
    """(tangent, sine, sine / (1 + cosine)) of the rotation that makes `off` zero between diagonal elements that differ
    by `height`; the smaller angle.
    """
    dtype = height.dtype
    zero, one = b.const(dtype, 0.0), b.const(dtype, 1.0)
    twice = b.add(off, off)
    cotangent = b.let(b.op("div", height, twice))  # of twice the angle
    size = b.let(b.op("abs", cotangent))
    some = b.let(b.op("min", size, b.const(dtype, 2.0**40)))  # whose square does not overflow
    root = b.op("max", size, b.op("sqrt", b.add(one, b.term(some, some))))
    least = b.op("div", one, b.add(size, root))
    signed = b.select(b.op("lt", cotangent, zero), b.op("neg", least), least)
    tangent = b.let(b.select(b.op("eq", off, zero), zero, signed))
    cosine = b.let(b.op("div", one, b.op("sqrt", b.add(one, b.term(tangent, tangent)))))
    sine = b.let(b.mul(tangent, cosine))
    return tangent, sine, b.let(b.op("div", sine, b.add(one, cosine)))


def _turn(b: Any, x: Lanes, first: Any, second: Any, sine: Any, ratio: Any) -> tuple[Any, Any]:
    """Two elements, turned: what they were, and corrections, which round less than products by a cosine."""
    p, q = x[first], x[second]
    return (
        b.let(b.sub(p, b.term(sine, b.add(q, b.term(ratio, p))))),
        b.let(b.add(q, b.term(sine, b.sub(p, b.term(ratio, q))))),
    )


def _until_done(block: Block, notes: int, enough: float, sweep: Any) -> None:
    """Sweeps until no lane noted in the last one that more than `enough` was left."""
    Rounds(block, SWEEPS).run(lambda: block.largest(notes, LEFT), enough, lambda _: block.run(sweep))


def _turn_vectors(b: Any, x: Lanes, n: int, entry: Entry, p: Index, q: Index, sine: Any, ratio: Any) -> None:
    def element(k: Index) -> None:
        first, second = entry(p, k), entry(q, k)
        x[first], x[second] = _turn(b, x, first, second, sine, ratio)

    repeat(b, 0, n, element)


def svd_in_lanes(
    ctx: Any, batch: Sequence[int], m: int, n: int, source: Any, values: Any, left: Any, right: Any
) -> None:
    """values[k] descending, and if wanted left[m, k] and right[k, n], k = min(m, n).

    The columns of a tall matrix, the rows of a wide one, are turned until they are orthogonal: their lengths are the
    singular values, their directions the singular vectors of one side, the rotations those of the other.
    """
    b, dtype = ctx.b, source.dtype
    tall = m >= n
    k, length = min(m, n), max(m, n)
    entry, other = (_along_columns, _along_rows) if tall else (_along_rows, _along_columns)
    directions, rotations = (left, right) if tall else (right, left)
    held = [
        Held(dtype, m, n, source, directions, 2 if directions is not None else None, tall),
        Held(dtype, k, 1, None, values, 2),
        Held("i32", k, 1),
        Held(dtype, 3, 1),
        Held(dtype, k, 1),
    ]
    if rotations is not None:
        held.append(Held(dtype, k, k, None, rotations, 2, not tall))
    eps = float(limits(dtype).eps)
    zero, one = b.const(dtype, 0.0), b.const(dtype, 1.0)
    # Of equal columns a difference is left, by so much shorter again in each sweep: in the end it is nothing.
    least = eps**2

    def start(a: Lanes, _s: Lanes, _places: Lanes, notes: Lanes, _squares: Lanes, *v: Lanes) -> None:
        prepare(b, a, notes, m, lambda _: n, lambda i, j: (i, j))
        notes[LEFT, 0] = one
        for x in v:
            _unit(b, x, k)

    def product(a: Lanes, p: Index, q: Index) -> Any:
        return b.let(
            fold(b, 0, length, [zero], lambda i, total: [b.add(total, b.term(a[entry(p, i)], a[entry(q, i)]))])[0]
        )

    def sweep(a: Lanes, _s: Lanes, _places: Lanes, notes: Lanes, squares: Lanes, *v: Lanes) -> None:
        notes[LEFT, 0] = zero

        def measure(p: Index) -> None:
            squares[p, 0] = product(a, p, p)

        def pair(p: Index, q: Index) -> None:
            off, first, second = product(a, p, q), squares[p, 0], squares[q, 0]
            matters = b.let(b.op("gt", b.op("min", first, second), b.const(dtype, least**2)))
            cosine = b.op("div", b.op("abs", off), b.mul(b.op("sqrt", first), b.op("sqrt", second)))
            notes[LEFT, 0] = b.op("max", notes[LEFT, 0], b.select(matters, cosine, zero))
            tangent, sine, ratio = _angle(b, b.let(b.sub(second, first)), b.let(b.select(matters, off, zero)))
            squares[p, 0], squares[q, 0] = b.sub(first, b.term(tangent, off)), b.add(second, b.term(tangent, off))
            _turn_vectors(b, a, length, entry, p, q, sine, ratio)
            for x in v:
                _turn_vectors(b, x, k, other, p, q, sine, ratio)

        repeat(b, 0, k, measure)
        _pairs(b, k, pair)

    def finish(a: Lanes, s: Lanes, places: Lanes, notes: Lanes, _squares: Lanes, *v: Lanes) -> None:
        scale, poison = notes[SCALE, 0], notes[POISON, 0]
        notes[LEFT, 0] = zero

        def value(p: Index) -> None:
            size = b.let(b.op("sqrt", product(a, p, p)))
            vanishes = b.let(b.op("le", size, b.const(dtype, least)))
            size = b.let(b.select(vanishes, zero, size))
            s[p, 0] = b.mul(size, scale)
            notes[LEFT, 0] = b.select(vanishes, one, notes[LEFT, 0])
            factor = b.let(b.select(vanishes, zero, b.op("div", one, size)))

            def direction(i: Index) -> None:
                a[entry(p, i)] = b.mul(a[entry(p, i)], factor)

            repeat(b, 0, length, direction)

        repeat(b, 0, k, value)
        rank(b, s, places, k, True)
        for x in (s, a, *v):
            add_to_all(b, x, poison)

    def complete(a: Lanes, s: Lanes, _places: Lanes, _notes: Lanes, _squares: Lanes, *v: Lanes) -> None:
        with b.loop(k, "sequential") as p:
            _fill_direction(b, a, s, k, length, entry, p)

    def body(block: Block) -> None:
        block.run(start)
        _until_done(block, 3, length * eps, sweep)
        block.run(finish)
        if directions is not None:
            gone = block.largest(3, LEFT)
            with b.if_(b.op("gt", gone, b.const(gone.dtype, 0))):
                block.run(complete)

    in_blocks(ctx, batch, 64 // ITEMSIZE[dtype], 50 * length * k * k, held, body)


def _fill_direction(b: Any, a: Lanes, s: Lanes, k: int, length: int, entry: Entry, p: Index) -> None:
    """The p-th direction, where its singular value is zero: orthogonal to all that are there already.

    The axis that has the least part in these, without that part, twice, since once leaves rounding errors.
    """
    dtype = a.work.dtype
    zero, one = b.const(dtype, 0.0), b.const(dtype, 1.0)
    is_gone = b.let(b.op("eq", s[p, 0], zero))

    def least(i: Index, best: Any, axis: Any) -> list[Any]:
        def add(j: Index, total: Any) -> list[Any]:
            x = a[entry(j, i)]
            return [b.add(total, b.term(x, x))]

        (part,) = fold(b, 0, k, [zero], add)
        part = b.let(part)
        wins = b.op("lt", part, best)
        return [b.select(wins, part, best), b.select(wins, number(b, i), axis)]

    _, axis = fold(b, 0, length, [b.const(dtype, math.inf), b.const("i32", 0)], least)
    axis = b.let(axis)

    def begin(i: Index) -> None:
        unit = b.select(b.op("eq", axis, number(b, i)), one, zero)
        a[entry(p, i)] = b.select(is_gone, unit, a[entry(p, i)])

    def without(j: Index) -> None:
        (part,) = fold(b, 0, length, [zero], lambda i, total: [b.add(total, b.term(a[entry(j, i)], a[entry(p, i)]))])
        itself = b.op("eq", number(b, j), number(b, p))
        part = b.let(b.select(b.op("or", itself, b.op("not", is_gone)), zero, part))

        def element(i: Index) -> None:
            a[entry(p, i)] = b.sub(a[entry(p, i)], b.term(part, a[entry(j, i)]))

        repeat(b, 0, length, element)

    repeat(b, 0, length, begin)
    for _ in range(2):
        repeat(b, 0, k, without)
    (square,) = fold(b, 0, length, [zero], lambda i, total: [b.add(total, b.term(a[entry(p, i)], a[entry(p, i)]))])
    factor = b.let(b.select(is_gone, b.op("div", one, b.op("sqrt", square)), one))

    def scale(i: Index) -> None:
        a[entry(p, i)] = b.mul(a[entry(p, i)], factor)

    repeat(b, 0, length, scale)
