"""In which order a program combines the elements of an array that it does nothing else with.

Eager work does so in the same order (runtime/eager/reductions.py). It follows from the nest, which is built here as
lowering builds it, and gets its lanes and threads. To price the other forms of a nest takes longer than all that: of
large arrays that are read row by row in pieces for sums down their columns nothing is said. Rows have no such forms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pullback.loops.ir import Builder, Expr, Function
from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.ir import Const, Loop, Stmt
from pullback.loops.schedule.apply.parallelize import parallelize
from pullback.loops.schedule.apply.vectorize import vectorize
from pullback.loops.schedule.choose import EFFORT_NS
from pullback.loops.schedule.cost import nanoseconds
from pullback.loops.schedule.machine import NOMINAL
from pullback.loops.schedule.price import Price, least, price

ROWS, COLUMNS = "rows", "columns"  # lanes share a row; or each column is added up by itself, element after element
Order = tuple[str, int]  # one of both, and the chunks that are added up first
Runs = Sequence[tuple[int, bool]]  # (length, whether it is reduced) of axes, no two neighbours of one kind


def order_of(runs: Runs, dtype: str, combine: str) -> Order | None:
    """The order of a reduction over one run of more elements than are straight code; None if it is not known here."""
    function = _nest(runs, dtype, combine)
    nest = [stmt for stmt in function.body if isinstance(stmt, Loop)]
    new = Fresh("s", function)
    walked = [stmt for loop in vectorize(nest) if isinstance(loop, Loop) for stmt in parallelize(new, loop)]
    order = _read(walked)
    if order is not None and order[0] == COLUMNS and nanoseconds(nest) >= EFFORT_NS:
        written = sum((price(stmt, NOMINAL) for stmt in walked), start=Price()).total
        if written - sum(least(loop, NOMINAL) for loop in nest) >= EFFORT_NS:
            return None
    return order


def _nest(runs: Runs, dtype: str, combine: str) -> Function:
    b = Builder()
    sizes = [n for n, _ in runs]
    kept = [k for k, (_, is_reduced) in enumerate(runs) if not is_reduced]
    (reduced,) = (k for k, (_, is_reduced) in enumerate(runs) if is_reduced)
    x = b.input("x", dtype, math.prod(sizes))
    out = b.output("out", dtype, math.prod(sizes[k] for k in kept))

    def place(axes: Sequence[int], index: dict[int, Expr]) -> Expr:
        flat: Expr = b.index(0)
        for k in axes:
            flat = b.op("add", b.op("mul", flat, b.index(sizes[k])), index[k])
        return flat

    def level(left: Sequence[int], index: dict[int, Expr]) -> None:
        if left:
            with b.loop(b.index(sizes[left[0]]), "parallel", "i") as i:
                level(left[1:], {**index, left[0]: i})
            return
        with b.reduce(b.index(sizes[reduced]), b.const(dtype, 1.0 if combine == "mul" else 0.0), combine) as sums:
            sums.update(b.op(combine, sums.var, b.load(x, place(range(len(runs)), {**index, reduced: sums.i}))))
        b.store(out, place(kept, index), sums.result)

    level(kept, {})
    return b.function("reduction")


def _read(body: Sequence[Stmt]) -> Order | None:
    """The order that scheduled nests have."""
    nests = [_loops(stmt) for stmt in body if isinstance(stmt, Loop)]
    if any(loops is None for loops in nests) or len(nests) not in (1, 2):
        return None
    *before, last = [loops for loops in nests if loops is not None]
    if not last or not last[-1].carried or any(each.carried for each in last[:-1]):
        return None
    kind = ROWS if last[-1].role == "vector" else COLUMNS
    if not before:
        return kind, 1
    (first,) = before
    chunks, inner = first[0].extent, first[-1]
    if not isinstance(chunks, Const) or first[0].role != "threads" or not inner.carried:
        return None
    if (inner.role == "vector") != (kind == ROWS) or any(each.carried for each in first[:-1]):
        return None
    return kind, int(chunks.value)


def _loops(stmt: Stmt) -> list[Loop] | None:
    """Loops that stand alone in one another, from `stmt` inwards; None if there are others beside them."""
    found: list[Loop] = []
    while isinstance(stmt, Loop):
        found.append(stmt)
        inner = [each for each in stmt.body if isinstance(each, Loop)]
        if not inner:
            return found
        if len(inner) > 1:
            return None
        (stmt,) = inner
    return None


__all__ = ["COLUMNS", "ROWS", "Order", "Runs", "order_of"]
