"""Systems with one triangular matrix and many right-hand sides, which lie in lanes: M X = B, all row-major.

For each panel of as many columns of B as one or two registers hold, a few rows of X at a time: they stay in registers
while all rows found before are multiplied and subtracted, as in a product, and what the rows take from each other is
straight code. Each element of X is computed by the same additions in the same order however panels and rows are cut, so
the last panel and the last rows may overlap those before: they are found again, with the same values.

Measured (two cores of a Xeon with AVX-512, as many right-hand sides as unknowns, us), OpenBLAS's trsm, by halves from
128 unknowns on, and this: float32 of 40 3.8 and 0.8, 60 9.4 and 2.4, 120 42 and 8, 250 218 and 67, 500 1,010 and 455,
1000 5,060 and 4,120; complex64 of 40 8 and 6, 120 111 and 67.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.lax.linalg import blocked_solve
from pullback.lax.records.nests import loops
from pullback.loops.emit.cpu.target import current_target
from pullback.loops.ir import ITEMSIZE

REAL = ("f32", "f64")
VECTOR = 64  # bytes of a row of a panel that are one vector


def suits(dtype: str, n: int, right_sides: int) -> bool:
    """Whether lanes are filled; halves of large complex systems, whose products are OpenBLAS's, are quicker."""
    return right_sides * ITEMSIZE[dtype] >= VECTOR and (dtype in REAL or n < blocked_solve.LEAST)


def padded(dtype: str, n: int) -> int:
    """Rows of a square matrix of n rows whose rows are whole vectors."""
    width = VECTOR // ITEMSIZE[dtype]
    return -(-n // width) * width


def framed(ctx: Any, a: Any, held: Any) -> None:
    """held[:n, :n] = a[n, n]; its other rows and columns are those of the identity."""
    b, n, size = ctx.b, a.shape[0], held.shape[0]

    one, zero = b.const(a.dtype, 1), b.const(a.dtype, 0)

    def below(index: tuple[Any, Any]) -> None:
        i, j = b.let(index[0] + n), index[1]
        ctx.store(held, (i, j), b.select(b.eq(i, j), one, zero))

    loops(b, (n, n), lambda index: ctx.store(held, index, ctx.load(a, index)))
    if size > n:
        loops(b, (size - n, size), below)
        loops(b, (n, size - n), lambda index: ctx.store(held, (index[0], b.let(index[1] + n)), zero))


def _less(b: Any, total: Any, factor: Any, value: Any) -> Any:
    return b.let(b.sub(total, b.term(factor, value)))


def less_products(
    b: Any, rows: Sequence[Sequence[Any]], extent: Any, factors: Callable[[Any], list], values: Callable[[Any], list]
) -> list[list[Any]]:
    """Rows of vectors less the sum over k < extent of factors(k), one for each row, times values(k), one row."""
    begin = [value for row in rows for value in row]
    with b.carried_loop(extent, [((value,), None) for value in begin]) as k:
        found, each = [b.let(x) for x in values(k.i)], [b.let(x) for x in factors(k.i)]
        pairs = [(factor, value) for factor in each for value in found]
        k.update(*[_less(b, total, *pair) for total, pair in zip(k.vars, pairs)])
    results, width = list(k.results), len(rows[0])
    return [results[start : start + width] for start in range(0, len(results), width)]


def solve_rows(b: Any, rows: list[list[Any]], scales: Sequence[Any], factor: Callable[[int, int], Any]) -> None:
    """Rows of vectors become the solution: each times its scale (None: 1), and then factor(later, q) times row q is
    taken from those after it.
    """
    for q, row in enumerate(rows):
        if scales[q] is not None:
            row[:] = [b.let(b.mul(value, scales[q])) for value in row]
        for later in range(q + 1, len(rows)):
            times = factor(later, q)
            rows[later] = [_less(b, total, times, value) for total, value in zip(rows[later], row)]


def substitute(
    ctx: Any, a: Any, source: Any, out: Any, lower: bool, turned: bool, conjugate: bool, unit: bool, threads: bool
) -> None:
    """out = op(a)^-1 source; op(a) is the transpose if `turned`; `lower` says which triangle of a is read."""
    b, (n, count) = ctx.b, out.shape
    wide = current_target().vector_bytes == VECTOR
    width = VECTOR // ITEMSIZE[out.dtype]
    parts = 2 if wide and count >= 2 * width else 1
    rows = min(8 if wide else 4, n)
    first_to_last = lower != turned

    def row(step: Any) -> Any:
        return step if first_to_last else n - 1 - step

    def element(i: Any, j: Any) -> Any:
        i, j = row(i), row(j)
        value = ctx.load(a, (j, i) if turned else (i, j))
        return b.let(b.op("conj", value) if conjugate else value)

    def scale(at: Any) -> Any:
        return None if unit else b.let(b.op("div", b.const(out.dtype, 1), element(at, at)))

    role, grain = ("threads", (("grain", 1),)) if threads else ("sequential", ())
    with b.loop(-(-count // (parts * width)), role, "panel", grain) as panel:
        column = b.let(b.op("min", panel * (parts * width), b.index(count - parts * width)))
        with b.loop(-(-n // rows), "sequential", "block") as block:
            start = b.let(b.op("min", block * rows, b.index(n - rows)))
            with b.loop(width, "vector", "j", (("lanes", width),)) as j:
                places = [column + part * width + j for part in range(parts)]
                begin = [[ctx.load(source, (row(start + q), place)) for place in places] for q in range(rows)]
                solved = less_products(
                    b,
                    begin,
                    start,
                    lambda k: [element(start + q, k) for q in range(rows)],
                    lambda k: [ctx.load(out, (row(k), place)) for place in places],
                )
                scales = [scale(start + q) for q in range(rows)]
                solve_rows(b, solved, scales, lambda later, q: element(start + later, start + q))
                for q, values in enumerate(solved):
                    for place, value in zip(places, values):
                        ctx.store(out, (row(start + q), place), value)


__all__ = ["VECTOR", "framed", "less_products", "padded", "solve_rows", "substitute", "suits"]
