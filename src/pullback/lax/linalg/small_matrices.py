"""Factorizations of small matrices: of many at once, each lane of a vector has one of its own; of few, in registers.

LAPACK takes a microsecond to begin with a matrix; a stack of thousands of 3 x 3 is done in a fiftieth of that each. A
block of matrices is copied to scratch memory in which neighbours are the same element of different matrices; there the
textbook algorithm runs in all lanes, and which row is the pivot is a `select`. Blocks are shared among threads.

    a[block * 16 + lane, i, j]  ->  work[i * n + j, lane]  ->  vector lane < 16 { factorize }  ->  result

Matrices up to 16 x 16 of large stacks are done so. Measured: 1000 Cholesky factors of 4 x 4 take 50 us, 400 by LAPACK.
A few matrices up to 4 x 4, as in the steps of a filter, are straight code by the same algorithms: 500 steps with the
inverse of a 2 x 2 matrix take 40 us, 112 by LAPACK.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.lax.linalg.stacks import CHUNKS, WORTH_THREADS, padded
from pullback.lax.records.nests import loops
from pullback.util.record import record

# Rows and columns, at most, with which LAPACK's blocks do no better: measured for 400 matrices.
MOST_LU, MOST_SOLVE, MOST_CHOLESKY, MOST_QR = 16, 16, 32, 32
GROUP = 4  # rows or columns whose sums are made at once: each waits for itself
GROUPED = 24  # rows or columns from which that is a gain
UNROLLED = 4  # iterations up to which a loop is straight code

Index = Any  # int or expression


def lanes_of(dtype: Any) -> int:
    """Matrices of a block: as many as elements of a cache line."""
    return 64 // np.dtype(dtype).itemsize


def suits(batch: Sequence[int], dtype: Any, most: int, *sizes: int) -> bool:
    """Whether a stack of matrices with these numbers of rows and columns, `most` at most, is done in lanes."""
    count = math.prod(batch)
    return np.dtype(dtype).kind == "f" and count >= lanes_of(dtype) and max(sizes) <= most and min(sizes) > 0


def are_few(batch: Sequence[int], dtype: Any, *sizes: int) -> bool:
    """Whether a stack of matrices, too few for lanes, is done in registers, one after the other."""
    small = min(sizes) > 0 and max(sizes) <= UNROLLED
    return np.dtype(dtype).kind == "f" and small and not suits(batch, dtype, UNROLLED, *sizes)


class Registers:
    """One matrix, each element a value; with `column`, that column of the source alone."""

    def __init__(self, ctx: Any, rows: int, columns: int, source: Any = None, column: Any = None) -> None:
        self.ctx = ctx
        self.dtype = None if source is None else source.dtype
        self.values: dict[tuple[Index, Index], Any] = {}
        if source is not None:
            for i in range(rows):
                for j in range(columns):
                    self[i, j] = ctx.load(source, (i, j if column is None else column))

    def __getitem__(self, at: tuple[Index, Index]) -> Any:
        return self.values[at]

    def __setitem__(self, at: tuple[Index, Index], value: Any) -> None:
        self.values[at] = self.ctx.b.let(value)

    def write(self, target: Any, column: Any = None) -> None:
        """Store all elements, or the only column as that column of the target; a vector has one column."""
        for (i, j), value in self.values.items():
            self.ctx.store(target, (i, j if column is None else column)[: target.ndim], value)


def one_by_one(ctx: Any, batch: Sequence[int], body: Callable[[Callable[..., Any]], None]) -> None:
    """`body(matrix)` for each of a few; `matrix(storage, ndim)` is the matrix, or vector, of a storage there."""
    n = math.prod(batch)

    def run(index: tuple[Any, ...]) -> None:
        body(lambda x, ndim=2: x.reshaped((n, *x.shape[x.ndim - ndim :])).at(index[0]))

    if n:
        loops(ctx.b, (n,), run)


class Lanes:
    """The matrices of a block, one in each lane: `x[i, j]` is an element of all of them."""

    def __init__(self, ctx: Any, work: Any, lane: Any, columns: int) -> None:
        self.ctx, self.work, self.lane, self.columns = ctx, work, lane, columns
        self.dtype = work.dtype

    def _place(self, at: tuple[Index, Index]) -> tuple[Any, Any]:
        i, j = at
        if isinstance(i, int) and isinstance(j, int):
            return i * self.columns + j, self.lane
        b = self.ctx.b
        return b.add(b.mul(b.index(i), b.index(self.columns)), b.index(j)), self.lane

    def __getitem__(self, at: tuple[Index, Index]) -> Any:
        return self.ctx.b.let(self.ctx.load(self.work, self._place(at)))

    def __setitem__(self, at: tuple[Index, Index], value: Any) -> None:
        self.ctx.store(self.work, self._place(at), value)


Matrix = Lanes | Registers


@record
class Held:
    """What a block holds of a stack: rows x columns of one dtype, copied from `source` and to `target` if given.

    `places`: the number of what is held that says to which row of the target each row goes, or column if `by_columns`.
    """

    dtype: str
    rows: int
    columns: int
    source: Any = None
    target: Any = None
    places: int | None = None
    by_columns: bool = False

    @property
    def count(self) -> int:
        """Elements of one matrix."""
        return self.rows * self.columns


class Rounds:
    """Rounds of steps on a block of matrices, at most `most`, until no lane needs another."""

    def __init__(self, block: Block, most: int) -> None:
        self._ctx, self._most = block.ctx, most
        self._left = block.ctx.temporary("i32", (CHUNKS, 16), "going").at(block.chunk)  # a cache line for each chunk

    def _count(self) -> Any:
        return self._ctx.load(self._left, (0,))

    def is_last(self) -> Any:
        """Whether no round comes after the one that is asked for."""
        b = self._ctx.b
        return b.op("le", self._count(), b.const("i32", 1))

    def run(self, ask: Callable[[], Any], enough: float, step: Callable[[Any], None]) -> None:
        """step(k) as long as k = ask(), before each round, is more than `enough`."""
        ctx, b = self._ctx, self._ctx.b
        ctx.store(self._left, (0,), b.const("i32", self._most + 1))
        with b.while_() as loop:
            loop.test(b.op("gt", self._count(), b.const("i32", 0)))
            k = b.let(ask())
            again = b.sub(self._count(), b.const("i32", 1))
            goes_on = b.op("gt", k, b.const(k.dtype, enough))
            ctx.store(self._left, (0,), b.select(goes_on, again, b.const("i32", 0)))
            with b.if_(b.op("gt", self._count(), b.const("i32", 0))):
                step(k)


class Block:
    """The matrices of a block while statements are made for it; `chunk` numbers the memory of its thread."""

    def __init__(self, ctx: Any, lanes: int, held: Sequence[Held], own: Sequence[Any], chunk: Index) -> None:
        self.ctx, self.lanes, self.held, self.own, self.chunk = ctx, lanes, held, own, chunk

    def run(self, body: Any) -> None:
        """`body(*Lanes)`, one for each of what is held, in all lanes."""
        with self.ctx.b.loop(self.lanes, "vector") as lane:
            body(*[Lanes(self.ctx, mine, lane, h.columns) for mine, h in zip(self.own, self.held)])

    def largest(self, k: int, row: int) -> Any:
        """The largest among all lanes of a number that is not negative, an element of the k-th of what is held."""
        b, mine = self.ctx.b, self.own[k]
        with b.reduce(self.lanes, b.const(mine.dtype, 0), "max") as r:
            r.update(b.op("max", r.var, self.ctx.load(mine, (row, r.i))))
        return r.result

    def read(self, first: Any, n: int) -> None:
        """Copies the sources."""
        b = self.ctx.b
        for mine, h in zip(self.own, self.held):
            if h.source is not None:
                with b.loop(self.lanes, "parallel") as lane, b.loop(h.count, "parallel") as e:
                    place = h.source.reshaped((n, h.count))
                    self.ctx.store(mine, (e, lane), self.ctx.load(place, (b.add(first, lane), e)))

    def write(self, first: Any, n: int) -> None:
        """Copies to the targets."""
        b = self.ctx.b
        for mine, h in zip(self.own, self.held):
            if h.target is None:
                continue
            if h.places is None:
                with b.loop(self.lanes, "parallel") as lane, b.loop(h.count, "parallel") as e:
                    place = h.target.reshaped((n, h.count))
                    self.ctx.store(place, (b.add(first, lane), e), self.ctx.load(mine, (e, lane)))
                continue
            target = h.target.reshaped((n, h.rows, h.columns))
            with (
                b.loop(self.lanes, "sequential") as lane,
                b.loop(h.rows, "sequential") as i,
                b.loop(h.columns, "sequential") as j,
            ):
                to = b.let(b.convert(self.ctx.load(self.own[h.places], (j if h.by_columns else i, lane)), "i64"))
                at = (i, to) if h.by_columns else (to, j)
                value = self.ctx.load(mine, (b.add(b.mul(i, b.index(h.columns)), j), lane))
                self.ctx.store(target, (b.add(first, lane), *at), value)


def in_lanes(ctx: Any, batch: Sequence[int], lanes: int, work: float, held: Sequence[Held], body: Any) -> None:
    """`body(*Lanes)`, one for each of `held`, for each block of a stack; see `in_blocks`."""
    in_blocks(ctx, batch, lanes, work, held, lambda block: block.run(body))


def in_blocks(
    ctx: Any, batch: Sequence[int], lanes: int, work: float, held: Sequence[Held], body: Callable[[Block], None]
) -> None:
    """`body(block)` for each block of a stack.

    `work`: operations for one matrix. The last block may do matrices again that the one before it did, so no target
    may lie where a source does.
    """
    b = ctx.b
    n = math.prod(batch)
    blocks = -(-n // lanes)
    chunks = min(blocks, CHUNKS) if n * (10 + work / 4) > WORTH_THREADS else 1
    size = -(-blocks // chunks)
    chunks = -(-blocks // size)
    memory = [ctx.temporary(h.dtype, (chunks, padded(h.dtype, (h.count, lanes))), "lanes") for h in held]

    def block(index: Any, chunk: Any) -> None:
        first = b.let(b.op("min", b.mul(index, b.index(lanes)), b.index(n - lanes)))
        own = [m.at(chunk).slice((0,), (h.count * lanes,)).reshaped((h.count, lanes)) for m, h in zip(memory, held)]
        made = Block(ctx, lanes, held, own, chunk)
        made.read(first, n)
        body(made)
        made.write(first, n)

    if chunks == 1:
        with b.loop(blocks, "sequential") as index:
            block(index, 0)
        return
    with b.loop(chunks, "threads", "chunk", (("grain", 1),)) as chunk:
        start = b.let(b.mul(chunk, b.index(size)))
        count = b.op("min", b.index(size), b.sub(b.index(blocks), start)) if blocks % size else b.index(size)
        with b.loop(count, "sequential") as k:
            block(b.let(b.add(start, k)), chunk)


# ---------------------------------------------------------------------------------------------------------- loops


def repeat(b: Any, low: Index, high: Index, body: Callable[[Index], None]) -> None:
    """body(i) for i = low ... high - 1, in order."""
    if isinstance(low, int) and isinstance(high, int):
        if high - low <= UNROLLED:
            for i in range(low, high):
                body(i)
            return
    with b.loop(b.sub(b.index(high), b.index(low)), "sequential") as i:
        body(b.let(b.add(i, b.index(low))) if not (isinstance(low, int) and low == 0) else i)


def fold(b: Any, low: Index, high: Index, starts: Sequence[Any], step: Callable[..., Sequence[Any]]) -> list[Any]:
    """values = step(i, *values) for i = low ... high - 1, in order, from `starts`."""
    if isinstance(low, int) and isinstance(high, int) and high - low <= UNROLLED:
        values = list(starts)
        for i in range(low, high):
            values = [b.let(v) for v in step(i, *values)]
        return values
    extent = b.sub(b.index(high), b.index(low))
    with b.carried_loop(extent, [((start,), None) for start in starts], "sequential") as r:
        i = r.i if isinstance(low, int) and low == 0 else b.let(b.add(r.i, b.index(low)))
        r.update(*step(i, *r.vars))
    return list(r.results)


def in_groups(b: Any, low: Any, high: int, body: Callable[[Sequence[Index]], None]) -> None:
    """body(indices) for all indices from `low` on, GROUP of them at a time, the first ones singly.

    Singly all of them where there are few: eigh and svd of 8 x 8 and 16 x 16 compile in 0.6 to 0.8 of the time and
    run as fast; of 32 x 32 eigh would take 1.14 times as long, of 64 x 64 1.36.
    """
    count = b.sub(b.index(high), low)
    single = count if high < GROUPED else b.let(b.floormod(count, b.index(GROUP)))
    with b.loop(single, "sequential") as i:
        body([b.let(b.add(low, i))])
    if high < GROUPED:
        return
    start = b.let(b.add(low, single))
    with b.loop(b.floordiv(count, b.index(GROUP)), "sequential") as g:
        first = b.let(b.add(start, b.mul(g, b.index(GROUP))))
        body([first, *(b.let(b.add(first, q)) for q in range(1, GROUP))])


def over_rows(b: Any, count: int, body: Callable[[Sequence[Index]], None]) -> None:
    """body(indices) for all indices below `count`, GROUP of them at a time, those that are left over at the end."""
    with b.loop(count // GROUP, "sequential") as g:
        first = b.let(b.mul(g, b.index(GROUP)))
        body([first, *(b.let(b.add(first, q)) for q in range(1, GROUP))])
    if count % GROUP:
        body(range(count - count % GROUP, count))


def after(b: Any, i: Index) -> Index:
    """i + 1."""
    return i + 1 if isinstance(i, int) else b.add(i, 1)


def number(b: Any, i: Index) -> Any:
    """An index as an i32 value."""
    return b.const("i32", i) if isinstance(i, int) else b.convert(i, "i32")


# ----------------------------------------------------------------------------------------------------- algorithms


def lu(b: Any, a: Matrix, pivots: Matrix, order: Matrix, m: int, n: int) -> None:
    """Gaussian elimination with partial pivoting (Golub and Van Loan, 3.4.1): a becomes L and U.

    pivots[k]: the row that k was exchanged with; order: the rows as they lie in the end.
    """

    def eliminate(k: Index) -> None:
        def larger(i: Index, best: Any, row: Any) -> list[Any]:
            here = b.op("abs", a[i, k])
            wins = b.op("gt", here, best)
            return [b.select(wins, here, best), b.select(wins, number(b, i), row)]

        below = after(b, k)
        _, row = fold(b, below, m, [b.op("abs", a[k, k]), number(b, k)], larger)
        pivots[k, 0] = row

        def exchange(i: Index) -> None:
            here = b.let(b.op("eq", row, number(b, i)))

            def swap(x: Matrix, j: Index) -> None:
                upper, lower = x[k, j], x[i, j]
                x[k, j] = b.select(here, lower, upper)
                x[i, j] = b.select(here, upper, lower)

            repeat(b, 0, n, lambda j: swap(a, j))
            swap(order, 0)

        repeat(b, below, m, exchange)
        pivot = a[k, k]
        vanishes = b.let(b.op("eq", pivot, b.const(pivot.dtype, 0)))

        def subtract(i: Index) -> None:
            first = a[i, k]
            factor = b.let(b.select(vanishes, first, b.op("div", first, pivot)))
            a[i, k] = factor

            def element(j: Index) -> None:
                a[i, j] = b.sub(a[i, j], b.term(factor, a[k, j]))

            repeat(b, below, n, element)

        repeat(b, below, m, subtract)

    def count(i: Index) -> None:
        order[i, 0] = number(b, i)

    repeat(b, 0, m, count)
    repeat(b, 0, min(m, n), eliminate)


def cholesky(b: Any, a: Matrix, bad: Matrix, n: int) -> None:
    """The factor replaces the lower triangle (Golub and Van Loan, 4.2.1); all of it is NaN where a pivot is not
    positive. The upper triangle becomes 0.
    """
    zero, nan = (b.const(a.dtype, value) for value in (0.0, math.nan))
    bad[0, 0] = b.const("i32", 0)

    def column(j: Index) -> None:
        def minus(i: Index) -> Any:
            return fold(b, 0, j, [a[i, j]], lambda k, s: [b.sub(s, b.term(a[i, k], a[j, k]))])[0]

        square = b.let(minus(j))
        bad[0, 0] = b.select(b.op("gt", square, zero), bad[0, 0], b.const("i32", 1))
        root = b.let(b.op("sqrt", square))
        a[j, j] = root

        def below(i: Index) -> None:
            a[i, j] = b.op("div", minus(i), root)

        repeat(b, after(b, j), n, below)

    repeat(b, 0, n, column)
    failed = b.let(b.op("ne", bad[0, 0], b.const("i32", 0)))

    def finish(i: Index) -> None:
        def lower(j: Index) -> None:
            a[i, j] = b.select(failed, nan, a[i, j])

        def upper(j: Index) -> None:
            a[i, j] = zero

        repeat(b, 0, after(b, i), lower)
        repeat(b, after(b, i), n, upper)

    repeat(b, 0, n, finish)


def substitute(
    b: Any, a: Matrix, x: Matrix, n: int, columns: int, *, lower: bool, turned: bool, unit: bool, left: bool
) -> None:
    """op(a) x = b, or x op(a) = b, by substitution; b is replaced by x. op transposes if `turned`."""
    # From the right it is the transposed system.
    down = lower != (turned if left else not turned)

    def of(i: Index, k: Index) -> Any:
        return a[k, i] if turned == left else a[i, k]

    def entry(i: Index, c: Index) -> tuple[Index, Index]:
        return (i, c) if left else (c, i)

    def row(t: Index) -> None:
        i = t if down else n - 1 - t if isinstance(t, int) else b.let(b.sub(b.index(n - 1), t))
        low, high = (0, i) if down else (after(b, i), n)
        pivot = None if unit else of(i, i)

        def column(c: Index) -> None:
            (rest,) = fold(b, low, high, [x[entry(i, c)]], lambda k, s: [b.sub(s, b.term(of(i, k), x[entry(k, c)]))])
            x[entry(i, c)] = rest if pivot is None else b.op("div", rest, pivot)

        repeat(b, 0, columns, column)

    repeat(b, 0, n, row)


def qr(b: Any, a: Lanes, q: Lanes | None, taus: Lanes, m: int, n: int, columns: int) -> None:
    """Householder's reflections with LAPACK's signs (Golub and Van Loan, 5.2.1): R replaces the upper triangle of a;
    q: m x columns.
    """
    dtype = a.dtype
    zero, one = b.const(dtype, 0.0), b.const(dtype, 1.0)

    def reflect(x: Lanes, k: Index, j: Index, tau: Any) -> None:
        """Column j of x, by the reflection whose vector is column k of a below the diagonal, with 1 on it."""
        below = after(b, k)
        (inner,) = fold(b, below, m, [x[k, j]], lambda i, s: [b.add(s, b.term(a[i, k], x[i, j]))])
        w = b.let(b.mul(tau, inner))
        x[k, j] = b.sub(x[k, j], w)

        def row(i: Index) -> None:
            x[i, j] = b.sub(x[i, j], b.term(w, a[i, k]))

        repeat(b, below, m, row)

    def column(k: Index) -> None:
        below = after(b, k)
        alpha = a[k, k]
        # Squares of large numbers overflow: all is divided by the largest.
        (rest,) = fold(b, below, m, [zero], lambda i, s: [b.op("max", s, b.op("abs", a[i, k]))])
        rest = b.let(rest)
        scale = b.let(b.op("max", rest, b.op("abs", alpha)))
        scale = b.let(b.select(b.op("eq", scale, zero), one, scale))

        def square(x: Any) -> Any:
            part = b.let(b.op("div", x, scale))
            return b.term(part, part)

        (total,) = fold(b, below, m, [square(alpha)], lambda i, s: [b.add(s, square(a[i, k]))])
        length = b.mul(scale, b.op("sqrt", total))
        # The sign bit decides, as in LAPACK, also of -0.
        integer = "i32" if dtype == "f32" else "i64"
        negative = b.op("lt", b.bitcast(alpha, integer), b.const(integer, 0))
        beta = b.let(b.select(negative, length, b.op("neg", length)))
        nothing = b.let(b.op("eq", rest, zero))
        tau = b.let(b.select(nothing, zero, b.op("div", b.sub(beta, alpha), beta)))
        taus[k, 0] = tau
        divisor = b.let(b.select(nothing, one, b.sub(alpha, beta)))

        def vector(i: Index) -> None:
            a[i, k] = b.op("div", a[i, k], divisor)

        repeat(b, below, m, vector)
        a[k, k] = b.select(nothing, alpha, beta)
        repeat(b, below, n, lambda j: reflect(a, k, j, tau))

    steps = min(m, n)
    repeat(b, 0, steps, column)
    if q is None:
        return

    def unit(i: Index) -> None:
        def element(j: Index) -> None:
            q[i, j] = b.select(b.op("eq", number(b, i), number(b, j)), one, zero)

        repeat(b, 0, columns, element)

    def back(t: Index) -> None:
        k = steps - 1 - t if isinstance(t, int) else b.let(b.sub(b.index(steps - 1), t))
        tau = taus[k, 0]
        repeat(b, k, columns, lambda j: reflect(q, k, j, tau))

    repeat(b, 0, m, unit)
    repeat(b, 0, steps, back)


def take_upper(b: Any, a: Lanes, target: Lanes, m: int, n: int) -> None:
    """target = the upper triangle of the first m rows of a, zero below."""
    zero = b.const(a.dtype, 0.0)

    def row(i: Index) -> None:
        def below(j: Index) -> None:
            target[i, j] = zero

        def above(j: Index) -> None:
            target[i, j] = a[i, j]

        edge = min(i, n) if isinstance(i, int) else b.let(b.op("min", i, b.index(n)))
        repeat(b, 0, edge, below)
        repeat(b, edge, n, above)

    repeat(b, 0, m, row)
