"""Eigenvalues and vectors of many symmetric matrices at once, one in each lane: reflections make them tridiagonal, QL
steps with implicit shifts diagonal (Golub and Van Loan, 8.3.1 and 8.3.3).

    A = Q T Q^T                                    reflections; only the lower triangle is touched, and becomes Q
    for each diagonal element of T:
        until what is beside it vanishes in all lanes:
            T = R^T (T - shift) R + shift          each lane from its own first row on, by rotations R
            Q = Q R                                four rows at a time, each a chain through its elements

A lane that has nothing to do, or begins further up, turns by angles of zero. All lanes take as many steps as the
slowest, some 2 for each eigenvalue, where one matrix takes 1.7. Errors are those of LAPACK: small beside the largest
eigenvalue.

Measured (Zen 5, two cores, float32): of 1000 matrices 3 x 3 one takes 17 ns, by Jacobi's rotations in lanes 20, of 500
8 x 8 0.11 us, by those 0.29, of 300 16 x 16 0.5 us, by LAPACK 7, of 100 32 x 32 4.7 us, by LAPACK 28.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.lax.linalg.small_matrices import (
    Block,
    Held,
    Index,
    Lanes,
    Rounds,
    after,
    fold,
    in_blocks,
    in_groups,
    number,
    over_rows,
    repeat,
)
from pullback.lax.linalg.spectra import LEFT, POISON, SCALE, add_to_all, limits, prepare, rank
from pullback.loops.ir import ITEMSIZE

MOST = 64  # rows, at most: of more, a block of matrices leaves the second cache
STEPS = 40  # for one eigenvalue, at most; seldom more than 4 are made
SHIFT = LEFT  # in the notes of a lane


def eigh(ctx: Any, batch: Sequence[int], n: int, source: Any, lower: bool, vectors: Any, values: Any) -> None:
    """values[n] ascending and vectors[n, n] (or None) of the symmetric matrices of which one triangle is read."""
    b, dtype = ctx.b, source.dtype
    entry = (lambda i, j: (i, j)) if lower else (lambda i, j: (j, i))
    held = [
        Held(dtype, n, n, source, vectors, None if vectors is None else 2, True),
        Held(dtype, n, 1, None, values, 2),  # the diagonal
        Held("i32", n, 1),  # to which places eigenvalues go
        Held(dtype, 3, 1),  # notes
        Held(dtype, n, 1),  # beside the diagonal
        Held(dtype, n, 2),  # a vector and its image; cosines and sines of a step
        Held(dtype, n, 1),  # factors of reflections
        Held("i32", 1, 1),  # the row at which a step begins, 0 if there is none
    ]

    def start(a: Lanes, d: Lanes, _places: Lanes, notes: Lanes, e: Lanes, pairs: Lanes, taus: Lanes, _: Lanes) -> None:
        prepare(b, a, notes, n, lambda i: after(b, i), entry)
        if not lower:
            repeat(b, 1, n, lambda i: repeat(b, 0, i, lambda j: _set(a, (i, j), a[j, i])))
        if n > 2:
            with b.loop(n - 2, "sequential") as k:
                _reflect(b, a, d, e, pairs, taus, k, n)
        zero = b.const(dtype, 0.0)
        for k in range(max(n - 2, 0), n):
            d[k, 0] = a[k, k]
            e[k, 0] = a[k + 1, k] if k + 1 < n else zero
        if vectors is not None:
            _collect(b, a, pairs, taus, n)

    def finish(a: Lanes, d: Lanes, places: Lanes, notes: Lanes, *_: Lanes) -> None:
        scale, poison = notes[SCALE, 0], notes[POISON, 0]
        repeat(b, 0, n, lambda i: _set(d, (i, 0), b.mul(d[i, 0], scale)))
        rank(b, d, places, n, False)
        for x in (d,) if vectors is None else (d, a):
            add_to_all(b, x, poison)

    def body(block: Block) -> None:
        block.run(start)
        if n > 1:
            with b.loop(n - 1, "sequential") as row:
                _diagonalize(block, row, n, vectors is not None)
        block.run(finish)

    in_blocks(ctx, batch, 64 // ITEMSIZE[dtype], (9 if vectors is not None else 3) * n**3, held, body)


def _set(x: Lanes, at: tuple[Index, Index], value: Any) -> None:
    x[at] = value


def _reflect(b: Any, a: Lanes, d: Lanes, e: Lanes, pairs: Lanes, taus: Lanes, k: Index, n: int) -> None:
    """Column k becomes zero below the element under the diagonal: what is right of it is reflected from both sides.

    The vector v has 1 in its first place; its others replace the column. With p = tau A v the matrix loses v w^T +
    w v^T, w = p - tau / 2 (p . v) v.
    """
    dtype = a.dtype
    zero, one = b.const(dtype, 0.0), b.const(dtype, 1.0)
    first, second = b.let(after(b, k)), b.let(b.add(k, 2))
    d[k, 0] = a[k, k]
    alpha = a[first, k]
    (rest,) = fold(b, second, n, [zero], lambda i, s: [b.add(s, b.term(a[i, k], a[i, k]))])
    rest = b.let(rest)
    # Less than that is lost beside the largest element, and its squares have lost digits.
    nothing = b.let(b.op("lt", rest, b.const(dtype, float(limits(dtype).tiny / limits(dtype).eps))))
    length = b.op("sqrt", b.add(rest, b.term(alpha, alpha)))
    beta = b.let(b.select(b.op("lt", alpha, zero), length, b.neg(length)))
    tau = b.let(b.select(nothing, zero, b.op("div", b.sub(beta, alpha), beta)))
    factor = b.let(b.select(nothing, zero, b.op("div", one, b.sub(alpha, beta))))
    e[k, 0] = b.select(nothing, alpha, beta)
    taus[k, 0] = tau
    pairs[first, 0] = one

    def below(i: Index) -> None:
        a[i, k] = b.mul(a[i, k], factor)
        pairs[i, 0] = a[i, k]

    repeat(b, second, n, below)

    def image(rows: Sequence[Index]) -> None:
        def add(j: Index, *sums: Any) -> list[Any]:
            x = pairs[j, 0]
            return [
                b.add(s, b.term(a[_larger(b, i, j), _smaller(b, i, j)], x)) for s, i in zip(sums, rows)
            ]  # of the lower triangle

        for i, total in zip(rows, fold(b, first, n, [zero] * len(rows), add)):
            pairs[i, 1] = b.mul(tau, total)

    in_groups(b, first, n, image)
    (inner,) = fold(b, first, n, [zero], lambda i, s: [b.add(s, b.term(pairs[i, 0], pairs[i, 1]))])
    half = b.let(b.mul(b.mul(b.const(dtype, 0.5), tau), inner))
    repeat(b, first, n, lambda i: _set(pairs, (i, 1), b.sub(pairs[i, 1], b.term(half, pairs[i, 0]))))

    def row(i: Index) -> None:
        v, w = pairs[i, 0], pairs[i, 1]

        def element(j: Index) -> None:
            a[i, j] = b.sub(b.sub(a[i, j], b.term(v, pairs[j, 1])), b.term(w, pairs[j, 0]))

        repeat(b, first, after(b, i), element)

    repeat(b, first, n, row)


def _collect(b: Any, a: Lanes, pairs: Lanes, taus: Lanes, n: int) -> None:
    """Q, the product of the reflections, in place of their vectors: from the last one on, each with one more column."""
    dtype = a.dtype
    zero, one = b.const(dtype, 0.0), b.const(dtype, 1.0)

    def begin(k: Index) -> None:
        a[k, k] = one

        def others(i: Index) -> None:
            a[i, k] = a[k, i] = zero

        repeat(b, after(b, k), n, others)

    begin(n - 1)
    if n > 2:
        with b.loop(n - 2, "sequential") as step:
            k = b.let(b.sub(b.index(n - 3), step))
            first = b.let(after(b, k))
            tau = taus[k, 0]
            pairs[first, 0] = one
            repeat(b, b.let(b.add(k, 2)), n, lambda i: _set(pairs, (i, 0), a[i, k]))
            begin(first)

            def columns(of: Sequence[Index]) -> None:
                def add(i: Index, *sums: Any) -> list[Any]:
                    v = pairs[i, 0]
                    return [b.add(s, b.term(v, a[i, j])) for s, j in zip(sums, of)]

                sums = fold(b, first, n, [zero] * len(of), add)
                sums = [b.let(b.mul(tau, s)) for s in sums]

                def row(i: Index) -> None:
                    v = pairs[i, 0]
                    for s, j in zip(sums, of):
                        a[i, j] = b.sub(a[i, j], b.term(s, v))

                repeat(b, first, n, row)

            in_groups(b, first, n, columns)
    if n > 1:
        begin(0)


def _larger(b: Any, i: Index, j: Index) -> Any:
    return b.op("max", b.index(i), b.index(j))


def _smaller(b: Any, i: Index, j: Index) -> Any:
    return b.op("min", b.index(i), b.index(j))


def _diagonalize(block: Block, row: Any, n: int, vectors: bool) -> None:
    """QL steps until in no lane anything that matters is beside the diagonal in this row."""
    b = block.ctx.b
    dtype = block.held[0].dtype
    eps = float(limits(dtype).eps)
    zero, one = b.const(dtype, 0.0), b.const(dtype, 1.0)
    rounds = Rounds(block, STEPS)
    here = b.let(number(b, row))

    def look(_a: Lanes, d: Lanes, _p: Lanes, notes: Lanes, e: Lanes, _c: Lanes, _t: Lanes, begin: Lanes) -> None:
        """Where each lane's step begins, above the next element that vanishes, and its shift."""

        def vanishes(t: Index, to: Any, last: Any) -> list[Any]:
            i = b.let(b.sub(b.index(n - 2), t))
            own = d[i, 0]
            enough = b.mul(b.const(dtype, eps), b.add(b.op("abs", own), b.op("abs", d[after(b, i), 0])))
            gone = b.let(b.op("le", b.op("abs", e[i, 0]), b.op("max", enough, b.const(dtype, eps * eps))))
            return [b.select(gone, number(b, i), to), b.select(gone, own, last)]

        count = b.sub(b.index(n - 1), row)
        to, last = fold(b, 0, count, [b.const("i32", n - 1), d[n - 1, 0]], vanishes)
        goes_on = b.let(b.op("gt", to, here))
        begin[0, 0] = b.select(goes_on, to, b.const("i32", 0))
        off, own = e[row, 0], d[row, 0]
        tangent = b.let(b.op("div", b.sub(d[after(b, row), 0], own), b.add(off, off)))
        root = b.let(b.op("sqrt", b.add(one, b.term(tangent, tangent))))
        signed = b.select(b.op("lt", tangent, zero), b.neg(root), root)
        shift = b.add(b.sub(last, own), b.op("div", off, b.add(tangent, signed)))
        notes[SHIFT, 0] = b.select(goes_on, shift, zero)
        spent = b.op("and", goes_on, rounds.is_last())
        notes[POISON, 0] = b.select(spent, b.const(dtype, float("nan")), notes[POISON, 0])

    def step(top: Any) -> Callable[..., None]:
        def turn(a: Lanes, d: Lanes, _p: Lanes, notes: Lanes, e: Lanes, turns: Lanes, _t: Lanes, begin: Lanes) -> None:
            to = begin[0, 0]
            count = b.let(b.sub(top, row))

            def rotation(t: Index, g: Any, s: Any, c: Any, p: Any) -> list[Any]:
                i = b.let(b.sub(b.sub(top, t), 1))
                above = b.let(after(b, i))
                on = b.let(b.op("lt", number(b, i), to))
                off, own, other = e[i, 0], d[i, 0], d[above, 0]
                f, h = b.let(b.mul(s, off)), b.let(b.mul(c, off))
                root = b.let(b.op("sqrt", b.add(b.mul(f, f), b.term(g, g))))
                nothing = b.let(b.op("eq", root, zero))
                inverse = b.let(b.op("div", one, b.select(nothing, one, root)))
                s_next = b.let(b.mul(f, inverse))
                c_next = b.let(b.select(nothing, one, b.mul(g, inverse)))
                rest = b.let(b.sub(other, p))
                r = b.let(b.add(b.mul(b.sub(own, rest), s_next), b.mul(b.add(c_next, c_next), h)))
                p_next = b.let(b.mul(s_next, r))
                is_first = b.op("eq", number(b, above), to)
                e[above, 0] = b.select(on, b.select(is_first, zero, root), e[above, 0])
                d[above, 0] = b.select(on, b.add(rest, p_next), other)
                turns[i, 0], turns[i, 1] = b.select(on, c_next, one), b.select(on, s_next, zero)
                g_next = b.sub(b.mul(c_next, r), h)
                return [b.select(on, new, old) for new, old in ((g_next, g), (s_next, s), (c_next, c), (p_next, p))]

            g, _, _, p = fold(b, 0, count, [notes[SHIFT, 0], one, one, zero], rotation)
            d[row, 0] = b.sub(d[row, 0], p)
            e[row, 0] = b.select(b.op("gt", to, here), g, e[row, 0])
            if not vectors:
                return

            def rows(of: Sequence[Index]) -> None:
                def element(t: Index, *carried: Any) -> list[Any]:
                    i = b.let(b.sub(b.sub(top, t), 1))
                    above = b.let(after(b, i))
                    c, s = turns[i, 0], turns[i, 1]
                    kept = []
                    for k, x in zip(of, carried):
                        y = a[k, i]
                        a[k, above] = b.add(b.mul(c, x), b.term(s, y))
                        kept.append(b.sub(b.mul(c, y), b.term(s, x)))
                    return kept

                for k, x in zip(of, fold(b, 0, count, [a[k, top] for k in of], element)):
                    a[k, row] = x

            over_rows(b, n, rows)

        return turn

    def top_of_all() -> Any:
        block.run(look)
        return block.largest(7, 0)

    rounds.run(top_of_all, 0, lambda top: block.run(step(b.let(b.convert(top, "i64")))))


__all__ = ["MOST", "eigh"]
