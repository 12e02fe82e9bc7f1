"""Across (outer-loop vectorization): where each of many results reduces a row of its own, lanes go across the results,
through a transposed copy of the rows.

    parallel i < 300 {                                    parallel r, j { t[r*400 + j] = c[j*20 + r] }
      parallel j < 400 {                             =>   parallel i < 300 {
        reduce r < 20 -> s { f(x[i*20+r], c[j*20+r]) }      parallel j < 400 {
        y[i*400 + j] = s                                      reduce r < 20 -> s { f(x[i*20 + r], t[r*400 + j]) }
      }                                                       y[i*400 + j] = s

Lanes along a row end in a tree over the lanes, and leave some of them idle, for each result. What is copied is read
again for each `i`, so the copy is little beside it.

Measured: distances of all pairs, 1000 x 1000 of 50, take 0.45 of the time that they take with lanes along the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from pullback.loops.ir.affine import interval
from pullback.loops.ir.fold import const, make
from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.ir import Buffer, Const, Expr, If, Let, Load, Loop, Read, Stmt, Store, Var, While
from pullback.loops.ir.visit import Rewriter, Substitute, nodes, statements, stored
from pullback.loops.schedule.sketch import Form
from pullback.loops.schedule.space import LANES, Axis, axis_of, known_extent

TIMES_READ = 4  # times that what is copied is read, at least


def across(new: Fresh, chain: Sequence[Loop]) -> Form | None:
    """The nest with such rows copied; None if there are none."""
    nest = chain[0]
    written = stored((nest,))
    found: dict[tuple[Buffer, Expr], list[Loop]] = {}  # what is copied, and the axes that it has
    for around, reduce in _reductions(nest, []):
        for load in _loads(reduce):
            if load.buffer in written or load.buffer.space == "local" or (load.buffer, load.index) in found:
                continue
            axes = _axes(load, around, reduce)
            if axes is not None:
                found[load.buffer, load.index] = axes
    if not found:
        return None
    copies: list[Stmt] = []
    places: dict[tuple[Buffer, Expr], tuple[Buffer, Expr]] = {}
    for (buffer, index), axes in found.items():
        copy = new.buffer("across", buffer.dtype, prod(map(known_extent, axes)))
        place: Expr = const("i64", 0)
        for axis in axes:
            place = make("add", (make("mul", (place, axis.extent)), Read(axis.var)))
        places[buffer, index] = copy, place
        body: tuple[Stmt, ...] = (Store(copy, place, Load(buffer, index)),)
        for axis in reversed(axes):
            body = (Loop(axis.var, axis.extent, "parallel", body),)
        copies += Substitute({}, new.var).block(body)
    moved = _Moved(places).block((nest,))
    return Form(lambda: [*copies, *moved])


def _reductions(loop: Loop, around: list[Loop]) -> Iterator[tuple[list[Loop], Loop]]:
    """Reductions whose steps have no loops, with the loops around them, outermost first."""
    around = [*around, loop]
    for stmt in loop.body:
        if not isinstance(stmt, Loop):
            continue
        if stmt.role == "parallel":
            yield from _reductions(stmt, around)
        elif stmt.role == "reduce" and all(isinstance(each, Let) for each in stmt.body):
            yield around, stmt


def _loads(loop: Loop) -> list[Load]:
    inside = [stmt for stmt in statements((loop,)) if not isinstance(stmt, (If, While))]
    return [x for stmt in inside for x in nodes(stmt) if isinstance(x, Load)]


def _axes(load: Load, around: Sequence[Loop], reduce: Loop) -> list[Loop] | None:
    """The axes along which what is loaded differs, that of the lanes last; None if it is not to be copied."""
    loops = [*around, reduce]
    if not all(isinstance(each.extent, Const) for each in loops):
        return None
    ranges: dict[Var, tuple[int, int]] = {each.var: (0, known_extent(each) - 1) for each in loops}
    bounds = interval(load.index, ranges)  # what only some iterations load may lie outside
    if bounds is None or bounds[0] < 0 or bounds[1] >= load.buffer.size:
        return None
    *outer, last = around
    if known_extent(last) < LANES or axis_of(reduce).step(load.index) != 1:
        return None
    if Axis(last).step(load.index) in (None, 0, 1):
        return None
    steps = [Axis(each).step(load.index) for each in outer]
    if None in steps:
        return None
    again = prod(known_extent(each) for each, step in zip(outer, steps) if step == 0)
    if again < TIMES_READ:
        return None
    return [*(each for each, step in zip(outer, steps) if step != 0), reduce, last]


class _Moved(Rewriter):
    """Loads from the copies."""

    def __init__(self, places: dict[tuple[Buffer, Expr], tuple[Buffer, Expr]]) -> None:
        super().__init__()
        self.places = places

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Load):
            found = self.places.get((expr.buffer, expr.index))
            return expr if found is None else Load(*found)
        return expr
