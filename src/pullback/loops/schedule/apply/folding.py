"""Folding: a reduction down few columns goes down several rows at once, side by side, as if there were more columns.

    parallel i < 10 { reduce r < 1000 -> s { x[r*10 + i] } }
        =>   parallel j < 160 { reduce q < 62 -> p { x[q*160 + j] } }     (16 rows side by side)
             s of column i: the p of columns i, 10 + i, ..., 150 + i, and the last 8 rows

Ten columns fill no register, and one running result for each leaves the units that add waiting.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pullback.loops.ir.fold import const, make
from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.ir import Expr, Let, Load, Loop, Read, Stmt, Store, Var
from pullback.loops.ir.visit import Substitute, expressions, outside_indices
from pullback.loops.schedule.space import Axis, axis_of, known_extent
from pullback.util.record import NamedTuple

WIDE, NARROW = 128, 32  # columns that there are then at least: of long columns, and of shorter ones
LEAST_ROWS = 16  # so many rows of the folded array there are at least


class Folded(NamedTuple):
    """A folded reduction: `rows` rows side by side; `column` and `reduce` are the loops over what is wider and shorter,
    `lets` what they need of a column, which `repeats` writes out for all that is side by side.
    """

    rows: int
    column: Loop
    reduce: Loop
    lets: tuple[Let, ...]
    repeats: list[Stmt]


def fold(new: Fresh, chain: Sequence[Loop], lets: Sequence[Stmt], reduce: Loop) -> Folded | None:
    """The reduction of a loop over neighbouring columns, the last of `chain`, folded; None if its elements do not lie
    row after row.
    """
    column = chain[-1]
    width, height = known_extent(column), known_extent(reduce)
    rows = 1
    while rows * width < WIDE:
        rows *= 2
    while height < rows * LEAST_ROWS and rows * width >= 2 * NARROW:
        rows //= 2
    if (
        width < 2
        or rows < 2
        or height < rows * LEAST_ROWS
        or not all(isinstance(stmt, Let) for stmt in (*lets, *reduce.body))
    ):
        return None
    across, down = Axis(column), axis_of(reduce)
    of_column: dict[Var, Expr] = {column.var: Read(column.var)}
    of_column |= {let.var: let.value for let in lets if isinstance(let, Let)}
    needed: set[Var] = set()
    roots: list[Expr] = [x for stmt in reduce.body for x in expressions(stmt)]
    roots += [update for group in reduce.carried for update in group.updates]
    for expr in outside_indices(roots):
        if isinstance(expr, Load):
            if (across.step(expr.index), down.step(expr.index)) not in ((0, 0), (1, width)):
                return None
        elif isinstance(expr, Read):
            if expr.var in (column.var, reduce.var):
                return None
            if expr.var in of_column:
                needed.add(expr.var)
    j = new.var(column.var)
    outer: Expr = const("i64", 0)
    for each in chain[:-1]:
        outer = make("add", (make("mul", (outer, each.extent)), Read(each.var)))
    outer = make("mul", (outer, const("i64", rows * width)))
    size = math.prod(map(known_extent, chain)) * rows
    repeated = {var: new.buffer("repeated", var.dtype, size) for var in needed}
    pinned = {var: new.var(var) for var in needed}
    there = {column.var: Read(j), **{var: Read(pinned[var]) for var in needed}}
    wide = _moved(new, reduce, height // rows, lambda q: make("mul", (q, const("i64", rows))), there)
    again = tuple(Let(pinned[var], Load(repeated[var], make("add", (outer, Read(j))))) for var in needed)
    repeats: list[Stmt] = []
    if needed:
        row = Var("row", "i64")
        place = make("add", (make("add", (outer, make("mul", (Read(row), const("i64", width))))), Read(column.var)))
        body: tuple[Stmt, ...] = (*lets, *(Store(repeated[var], place, Read(var)) for var in needed))
        body = (Loop(row, const("i64", rows), "parallel", (Loop(column.var, column.extent, "parallel", body),)),)
        for each in reversed(chain[:-1]):
            body = (Loop(each.var, each.extent, "parallel", body),)
        repeats = list(Substitute({}, new.var).block(body))
    return Folded(rows, Loop(j, const("i64", rows * width), "parallel", (*again, wide)), wide, again, repeats)


def _moved(
    new: Fresh, reduce: Loop, extent: int, row: Callable[[Expr], Expr], others: Mapping[Var, Expr] | None = None
) -> Loop:
    """A copy of a reduction with another extent, whose iterations are about the rows that `row` says."""
    (copy,) = Substitute({}, new.var).block((reduce,))
    assert isinstance(copy, Loop)
    here = Substitute({copy.var: row(Read(copy.var)), **(others or {})})
    carried = tuple(replace(group, updates=tuple(map(here.rewrite, group.updates))) for group in copy.carried)
    return Loop(copy.var, const("i64", extent), copy.role, here.block(copy.body), carried, copy.attrs)


def left_over(new: Fresh, reduce: Loop, folded: Folded, starts: Sequence[Sequence[Expr]]) -> list[Stmt]:
    """The last rows, which make no whole one of the folded array, added to `starts`; binds the results of `reduce`."""
    height = known_extent(reduce)
    done = height // folded.rows * folded.rows
    if done == height:
        return [Let(v, x) for group, start in zip(reduce.carried, starts) for v, x in zip(group.results, start)]
    rest = _moved(new, reduce, height - done, lambda row: make("add", (row, const("i64", done))))
    carried = tuple(
        replace(mine, inits=tuple(start), results=group.results)
        for mine, group, start in zip(rest.carried, reduce.carried, starts)
    )
    return [Loop(rest.var, rest.extent, rest.role, rest.body, carried, rest.attrs)]
