"""Singular values of many matrices at once, one in each lane: reflections make them bidiagonal, QR steps with implicit
shifts diagonal (Golub and Van Loan, 5.4 and 8.6.3).

    A = Q B P^T                                    reflections from both sides; A becomes Q
    for each diagonal element of B, from the last one on:
        until what is above it vanishes in all lanes:
            B = S^T B R                            each lane from its own first column on, by rotations R and S
            P = P R, Q = Q S                       four rows at a time, each a chain through its elements

A wide matrix is done as its transpose. A lane that has nothing to do, or begins further down, turns by angles of zero;
all lanes take as many steps as the slowest. Where a diagonal element vanishes, a step without a shift makes the last
element above the diagonal vanish, so nothing else has to be done about it. Errors are those of LAPACK: small beside the
largest singular value.

Measured (Zen 3, one thread, us a matrix with its vectors, and by LAPACK's calls): float32 8 x 8 0.75 and 12, 16 x 16
4.9 and 52, 32 x 32 30 and 184, 48 x 48 72 and 287; float64 1.5 and 11, 8.6 and 41, 60 and 193, 180 and 411. Without
vectors a quarter to a half of that, where LAPACK takes half.
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

MOST = 48  # rows and columns, at most: of 64 x 64 a block of matrices in float64 leaves the second cache
STEPS = 40  # for one singular value, at most; seldom more than 4 are made
FIRST = LEFT  # in the notes of a lane: what a step begins with


class Turned:
    """Matrices of a block, transposed."""

    def __init__(self, x: Lanes) -> None:
        self._x = x

    def __getitem__(self, at: Place) -> Any:
        return self._x[at[1], at[0]]

    def __setitem__(self, at: Place, value: Any) -> None:
        self._x[at[1], at[0]] = value


Matrix = Lanes | Turned
Place = tuple[Index, Index]


def svd(ctx: Any, batch: Sequence[int], m: int, n: int, source: Any, values: Any, left: Any, right: Any) -> None:
    """values[k] descending, and if wanted left[m, k] and right[k, n], k = min(m, n)."""
    b, dtype = ctx.b, source.dtype
    tall = m >= n
    k, length = min(m, n), max(m, n)
    directions, rotations = (left, right) if tall else (right, left)
    held = [
        Held(dtype, m, n, source, directions, 2 if directions is not None else None, tall),
        Held(dtype, k, 1, None, values, 2),  # the diagonal
        Held("i32", k, 1),  # to which places singular values go
        Held(dtype, 3, 1),  # notes
        Held(dtype, k + 2, 1),  # above the diagonal: the i-th stands above its i-th element
        Held(dtype, k, 4),  # factors of reflections; cosines and sines of a step, from the right and from the left
        Held("i32", 1, 1),  # through how many columns a step goes, 0 if there is none
    ]
    if rotations is not None:
        held.append(Held(dtype, k, k, None, rotations, 2, not tall))
    zero = b.const(dtype, 0.0)

    def seen(a: Lanes, v: Sequence[Lanes]) -> tuple[Matrix, list[Matrix]]:
        """The tall matrix, and the other one with a column for each singular value."""
        return (a if tall else Turned(a)), [Turned(x) if tall else x for x in v]

    def start(a: Lanes, d: Lanes, _p: Lanes, notes: Lanes, e: Lanes, taus: Lanes, _: Lanes, *v: Lanes) -> None:
        prepare(b, a, notes, m, lambda _: n, lambda i, j: (i, j))
        x, others = seen(a, v)
        e[0, 0] = zero
        with b.loop(k, "sequential") as column:
            _reflect(b, x, d, e, taus, column, length, k)
        for y in others:
            _collect_right(b, x, y, taus, k)
        if directions is not None:
            _collect_left(b, x, taus, length, k)

    def finish(a: Lanes, d: Lanes, places: Lanes, notes: Lanes, _e: Lanes, _t: Lanes, _b: Lanes, *v: Lanes) -> None:
        scale, poison = notes[SCALE, 0], notes[POISON, 0]
        _, others = seen(a, v)

        def value(j: Index) -> None:
            own = d[j, 0]
            negative = b.let(b.op("lt", own, zero))
            d[j, 0] = b.mul(b.op("abs", own), scale)

            def turn(i: Index) -> None:
                for y in others:
                    y[i, j] = b.select(negative, b.neg(y[i, j]), y[i, j])

            repeat(b, 0, k, turn)

        repeat(b, 0, k, value)
        rank(b, d, places, k, True)
        for x in (d, *((a,) if directions is not None else ()), *v):
            add_to_all(b, x, poison)

    def apply(a: Lanes, v: Sequence[Lanes], turns: Lanes, first: Any, last: Any) -> None:
        x, others = seen(a, v)
        for y in others:
            _turn_rows(b, y, turns, 0, k, first, last)
        if directions is not None:
            _turn_rows(b, x, turns, 2, length, first, last)

    def body(block: Block) -> None:
        block.run(start)
        if k > 1:
            with b.loop(k - 1, "sequential") as t:
                _diagonalize(block, b.let(b.sub(b.index(k - 1), t)), apply)
        block.run(finish)

    work = length * k * k * (4 if directions is None and rotations is None else 20)
    in_blocks(ctx, batch, 64 // ITEMSIZE[dtype], work, held, body)


def _set(x: Matrix, at: Place, value: Any) -> None:
    x[at] = value


def _reflect(b: Any, x: Matrix, d: Lanes, e: Lanes, taus: Lanes, k: Index, m: int, n: int) -> None:
    """Column k becomes zero below the diagonal, then row k right of what is beside the diagonal.

    The vectors of both reflections, whose first elements are 1, replace what becomes zero, and those elements.
    """
    d[k, 0] = _vector(b, lambda i: (i, k), x, taus, (k, 0), k, m)
    second = b.let(after(b, k))

    def columns(of: Sequence[Index]) -> None:
        _reflect_lines(b, x, of, _down, lambda i: x[i, k], taus[k, 0], k, m)

    def rows(of: Sequence[Index]) -> None:
        _reflect_lines(b, x, of, _across, lambda j: x[k, j], taus[k, 1], second, n)

    in_groups(b, second, n, columns)
    with b.if_(b.op("lt", second, b.index(n))):
        e[second, 0] = _vector(b, lambda j: (k, j), x, taus, (k, 1), second, n)
        in_groups(b, second, m, rows)


def _vector(b: Any, at: Callable[[Index], Place], x: Matrix, taus: Lanes, place: Place, first: Index, end: int) -> Any:
    """The first element of a line after its reflection, whose vector replaces the line."""
    dtype = taus.dtype
    zero, one = b.const(dtype, 0.0), b.const(dtype, 1.0)
    second = b.let(after(b, first))
    alpha = x[at(first)]

    def add(i: Index, total: Any) -> list[Any]:
        each = x[at(i)]
        return [b.add(total, b.term(each, each))]

    rest = b.let(fold(b, second, end, [zero], add)[0])
    # Less than that is lost beside the largest element, and its squares have lost digits.
    nothing = b.let(b.op("lt", rest, b.const(dtype, float(limits(dtype).tiny / limits(dtype).eps))))
    size = b.op("sqrt", b.add(rest, b.term(alpha, alpha)))
    beta = b.let(b.select(b.op("lt", alpha, zero), size, b.neg(size)))
    taus[place] = b.select(nothing, zero, b.op("div", b.sub(beta, alpha), beta))
    factor = b.let(b.select(nothing, zero, b.op("div", one, b.sub(alpha, beta))))
    repeat(b, second, end, lambda i: _set(x, at(i), b.mul(x[at(i)], factor)))
    x[at(first)] = one
    return b.select(nothing, alpha, beta)


def _down(line: Index, i: Index) -> Place:
    return i, line


def _across(line: Index, i: Index) -> Place:
    return line, i


def _reflect_lines(
    b: Any,
    x: Matrix,
    lines: Sequence[Index],
    at: Callable[[Index, Index], Place],
    vector: Callable[[Index], Any],
    tau: Any,
    first: Index,
    end: int,
) -> None:
    """Some lines of x, from `first` on, without tau (v . line) v each; the i-th element of one is at(line, i)."""
    zero = b.const(tau.dtype, 0.0)

    def add(i: Index, *sums: Any) -> list[Any]:
        v = vector(i)
        return [b.add(s, b.term(v, x[at(line, i)])) for s, line in zip(sums, lines)]

    sums = [b.let(b.mul(tau, s)) for s in fold(b, first, end, [zero] * len(lines), add)]

    def element(i: Index) -> None:
        v = vector(i)
        for s, line in zip(sums, lines):
            x[at(line, i)] = b.sub(x[at(line, i)], b.term(s, v))

    repeat(b, first, end, element)


def _collect_right(b: Any, x: Matrix, y: Matrix, taus: Lanes, n: int) -> None:
    """y = P, the product of the reflections from the right, from the last one on, each with one more column."""
    dtype = taus.dtype
    zero, one = b.const(dtype, 0.0), b.const(dtype, 1.0)

    def unit(i: Index) -> None:
        repeat(b, 0, n, lambda j: _set(y, (i, j), b.select(b.op("eq", number(b, i), number(b, j)), one, zero)))

    repeat(b, 0, n, unit)
    if n > 1:
        with b.loop(n - 1, "sequential") as t:
            k = b.let(b.sub(b.index(n - 2), t))
            first = b.let(after(b, k))

            def columns(of: Sequence[Index]) -> None:
                _reflect_lines(b, y, of, _down, lambda i: x[k, i], taus[k, 1], first, n)

            in_groups(b, first, n, columns)


def _collect_left(b: Any, x: Matrix, taus: Lanes, m: int, n: int) -> None:
    """The first columns of Q, the product of the reflections from the left, in place of their vectors."""
    dtype = taus.dtype
    zero, one = b.const(dtype, 0.0), b.const(dtype, 1.0)
    with b.loop(n, "sequential") as t:
        k = b.let(b.sub(b.index(n - 1), t))
        second = b.let(after(b, k))
        tau = taus[k, 0]
        repeat(b, second, n, lambda j: _set(x, (k, j), zero))

        def columns(of: Sequence[Index]) -> None:
            _reflect_lines(b, x, of, _down, lambda i: x[i, k], tau, k, m)

        in_groups(b, second, n, columns)
        x[k, k] = b.sub(one, tau)
        repeat(b, second, m, lambda i: _set(x, (i, k), b.neg(b.mul(tau, x[i, k]))))


def _diagonalize(block: Block, bottom: Any, apply: Callable[..., None]) -> None:
    """QR steps until in no lane anything that matters is above the diagonal in this column."""
    b = block.ctx.b
    dtype = block.held[0].dtype
    eps = float(limits(dtype).eps)
    zero, one = b.const(dtype, 0.0), b.const(dtype, 1.0)
    rounds = Rounds(block, STEPS)
    here = b.let(number(b, bottom))

    def look(_a: Lanes, d: Lanes, _p: Lanes, notes: Lanes, e: Lanes, _t: Lanes, count: Lanes, *_: Lanes) -> None:
        """Where each lane's step begins, below the last element that vanishes, and with what."""

        def vanishes(i: Index, first: Any, head: Any, least: Any, most: Any) -> list[Any]:
            below = b.let(after(b, i))
            other = d[below, 0]
            size = b.let(b.op("abs", other))
            enough = b.mul(b.const(dtype, eps), b.add(b.op("abs", d[i, 0]), size))
            off = b.let(b.op("abs", e[below, 0]))
            gone = b.let(b.op("le", off, b.op("max", enough, b.const(dtype, eps * eps))))
            return [
                b.select(gone, number(b, below), first),
                b.select(gone, other, head),
                b.select(gone, size, b.op("min", least, size)),
                b.select(gone, size, b.op("max", b.op("max", most, off), size)),
            ]

        begins = b.let(b.op("abs", d[0, 0]))
        first, x, least, most = fold(b, 0, bottom, [b.const("i32", 0), d[0, 0], begins, begins], vanishes)
        columns = b.let(b.sub(here, first))
        count[0, 0] = columns
        goes_on = b.let(b.op("gt", columns, b.const("i32", 0)))
        # The eigenvalue of the last two rows and columns of B^T B that is nearer to the last element.
        z, y, h = d[bottom, 0], d[b.let(b.sub(bottom, 1)), 0], e[bottom, 0]
        single = b.op("eq", columns, b.const("i32", 1))
        g = b.let(b.select(single, zero, e[b.let(b.sub(bottom, 1)), 0]))
        squares = b.add(b.mul(b.sub(y, z), b.add(y, z)), b.mul(b.sub(g, h), b.add(g, h)))
        tangent = b.let(b.op("div", squares, b.mul(b.add(h, h), y)))
        root = b.let(b.op("sqrt", b.add(one, b.mul(tangent, tangent))))
        signed = b.add(tangent, b.select(b.op("lt", tangent, zero), b.neg(root), root))
        shifted = b.add(b.mul(b.sub(x, z), b.add(x, z)), b.mul(h, b.sub(b.op("div", y, signed), h)))
        begin = b.select(b.op("le", least, b.mul(most, b.const(dtype, eps))), x, b.op("div", shifted, x))
        notes[FIRST, 0] = b.select(goes_on, begin, zero)
        spent = b.op("and", goes_on, rounds.is_last())
        notes[POISON, 0] = b.select(spent, b.const(dtype, float("nan")), notes[POISON, 0])

    def angle(f: Any, g: Any) -> tuple[Any, Any, Any]:
        """(cosine, sine, length) of the rotation that makes g vanish."""
        root = b.let(b.op("sqrt", b.add(b.mul(f, f), b.term(g, g))))
        nothing = b.let(b.op("eq", root, zero))
        inverse = b.let(b.op("div", one, b.select(nothing, one, root)))
        return b.let(b.select(nothing, one, b.mul(f, inverse))), b.let(b.mul(g, inverse)), root

    def step(columns: Any) -> Callable[..., None]:
        top = b.let(b.sub(bottom, columns))

        def turn(a: Lanes, d: Lanes, _p: Lanes, notes: Lanes, e: Lanes, turns: Lanes, count: Lanes, *v: Lanes) -> None:
            own = b.let(b.sub(here, count[0, 0]))

            def rotation(t: Index, f: Any, g: Any) -> list[Any]:
                i = b.let(b.add(top, t))
                below = b.let(after(b, i))
                behind = b.let(after(b, below))
                at = b.let(number(b, i))
                on = b.let(b.op("ge", at, own))
                begins = b.let(b.op("eq", at, own))
                off, here_d, next_d, next_e = e[below, 0], d[i, 0], d[below, 0], e[behind, 0]
                c, s, r = angle(f, b.let(b.select(begins, off, g)))
                e[i, 0] = b.select(b.op("and", on, b.op("not", begins)), r, e[i, 0])
                f_left = b.let(b.add(b.mul(c, here_d), b.term(s, off)))
                off = b.let(b.sub(b.mul(c, off), b.term(s, here_d)))
                lower = b.let(b.mul(c, next_d))
                c_left, s_left, r_left = angle(f_left, b.let(b.mul(s, next_d)))
                d[i, 0] = b.select(on, r_left, here_d)
                d[below, 0] = b.select(on, b.sub(b.mul(c_left, lower), b.term(s_left, off)), next_d)
                inside = b.op("and", on, b.op("lt", below, bottom))
                e[behind, 0] = b.select(inside, b.mul(c_left, next_e), next_e)
                for number_, (value, none) in enumerate(zip((c, s, c_left, s_left), (one, zero, one, zero))):
                    turns[i, number_] = b.select(on, value, none)
                f_next = b.add(b.mul(c_left, off), b.term(s_left, lower))
                return [b.select(on, f_next, f), b.select(on, b.mul(s_left, next_e), g)]

            f, _ = fold(b, 0, columns, [notes[FIRST, 0], zero], rotation)
            e[bottom, 0] = b.select(b.op("gt", count[0, 0], b.const("i32", 0)), f, e[bottom, 0])
            apply(a, v, turns, top, bottom)

        return turn

    def columns_of_all() -> Any:
        block.run(look)
        return block.largest(6, 0)

    rounds.run(columns_of_all, 0, lambda columns: block.run(step(b.let(b.convert(columns, "i64")))))


def _turn_rows(b: Any, x: Matrix, turns: Lanes, which: int, rows: int, first: Any, last: Any) -> None:
    """The columns of x from `first` to `last`, each turned with the next by cosine and sine `which` of a step."""

    def turn(of: Sequence[Index]) -> None:
        def element(t: Index, *carried: Any) -> list[Any]:
            i = b.let(b.add(first, t))
            right = b.let(after(b, i))
            c, s = turns[i, which], turns[i, which + 1]
            kept = []
            for k, here in zip(of, carried):
                there = x[k, right]
                x[k, i] = b.add(b.mul(c, here), b.term(s, there))
                kept.append(b.sub(b.mul(c, there), b.term(s, here)))
            return kept

        for k, here in zip(of, fold(b, 0, b.let(b.sub(last, first)), [x[k, first] for k in of], element)):
            x[k, last] = here

    over_rows(b, rows, turn)


__all__ = ["MOST", "svd"]
