"""Systems with one triangular matrix and many right-hand sides, which lie in lanes: M X = B, all row-major.

For each panel of as many columns of B as one or two registers hold, a few rows of X at a time: they stay in registers
while all rows found before are multiplied and subtracted, as in a product, and what the rows take from each other is
straight code. Each element of X is computed by the same additions in the same order however panels and rows are cut, so
the last panel and the last rows may overlap those before: they are found again, with the same values.

Measured (two cores of a Xeon with AVX-512, as many right-hand sides as unknowns, us), OpenBLAS's trsm, by halves from
128 unknowns on, and this: float32 of 40 3.7 and 0.9, 60 9.4 and 2.5, 120 41 and 9, 250 257 and 72, 500 1600 and 500,
1000 17,500 and 6,000; complex64 of 40 8 and 6, 120 110 and 68.
"""

from __future__ import annotations

from typing import Any

from pullback.lax.linalg import blocked_solve
from pullback.loops.emit.cpu.target import current_target
from pullback.loops.ir import ITEMSIZE

REAL = ("f32", "f64")
REGISTER = 64  # bytes of a row of a panel that are one vector


def suits(dtype: str, n: int, right_sides: int) -> bool:
    """Whether lanes are filled; halves of large complex systems, whose products are OpenBLAS's, are quicker."""
    return right_sides * ITEMSIZE[dtype] >= REGISTER and (dtype in REAL or n < blocked_solve.LEAST)


def substitute(
    ctx: Any, a: Any, source: Any, out: Any, lower: bool, turned: bool, conjugate: bool, unit: bool, threads: bool
) -> None:
    """out = op(a)^-1 source; op(a) is the transpose if `turned`; `lower` says which triangle of a is read."""
    b, (n, count) = ctx.b, out.shape
    wide = current_target().vector_bytes == REGISTER
    width = REGISTER // ITEMSIZE[out.dtype]
    parts = 2 if wide and count >= 2 * width else 1
    rows = min(8 if wide else 4, n)
    first_to_last = lower != turned

    def row(step: Any) -> Any:
        return step if first_to_last else n - 1 - step

    def element(i: Any, j: Any) -> Any:
        i, j = row(i), row(j)
        value = ctx.load(a, (j, i) if turned else (i, j))
        return b.let(b.op("conj", value) if conjugate else value)

    def taken(total: Any, factor: Any, value: Any) -> Any:
        return b.let(b.sub(total, b.term(factor, value)))

    role, grain = ("threads", (("grain", 1),)) if threads else ("sequential", ())
    with b.loop(-(-count // (parts * width)), role, "panel", grain) as panel:
        column = b.let(b.op("min", panel * (parts * width), b.index(count - parts * width)))
        with b.loop(-(-n // rows), "sequential", "block") as block:
            start = b.let(b.op("min", block * rows, b.index(n - rows)))
            with b.loop(width, "vector", "j", (("lanes", width),)) as j:
                places = [column + part * width + j for part in range(parts)]
                begin = [ctx.load(source, (row(start + q), place)) for q in range(rows) for place in places]
                with b.carried_loop(start, [((value,), None) for value in begin]) as k:
                    found = [b.let(ctx.load(out, (row(k.i), place))) for place in places]
                    factors = [element(start + q, k.i) for q in range(rows)]
                    pairs = [(factor, value) for factor in factors for value in found]
                    k.update(*[taken(total, *pair) for total, pair in zip(k.vars, pairs)])
                totals = [list(k.results[q * parts : (q + 1) * parts]) for q in range(rows)]
                for q, solved in enumerate(totals):
                    if not unit:
                        scale = b.let(b.op("div", b.const(out.dtype, 1), element(start + q, start + q)))
                        solved[:] = [b.let(b.mul(value, scale)) for value in solved]
                    for later in range(q + 1, rows):
                        factor = element(start + later, start + q)
                        totals[later] = [taken(total, factor, value) for total, value in zip(totals[later], solved)]
                    for place, value in zip(places, solved):
                        ctx.store(out, (row(start + q), place), value)


__all__ = ["substitute", "suits"]
