"""A reduction down columns that are neighbours in memory, taken row by row: the running results lie in scratch rows.

    vector j < w { acc[j] = -0 }
    sequential q < 16 {
      vector j < w { acc[j] = acc[j] + x[..] + (7 more rows) }
    }

Sums of floats are made of blocks of BLOCK rows, whose results are added with the rounding errors kept, as in long sums
along rows: the order of additions depends on extents alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pullback.loops.ir.affine import divisor
from pullback.loops.ir.fold import const, make
from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.ir import Buffer, Carried, Const, Expr, Let, Load, Loop, Op, Read, Stmt, Store, Var
from pullback.loops.ir.visit import Substitute, nodes
from pullback.loops.schedule.apply.partials import neutrals, pairwise, plain_terms
from pullback.loops.schedule.sketch import ROWS_AT_ONCE

OPS = 24  # of all those rows
BLOCK = 128  # rows of a float sum between two compensated additions

# What stands for the variables around a reduction at column `j` of the strip, and the statements that this needs.
Place = Callable[[Var], tuple[Sequence[Stmt], dict[Var, Expr]]]


def i64(value: int) -> Const:
    """A number of the type of indices."""
    return const("i64", value)


def times_plus(x: Expr, factor: int, y: Expr) -> Expr:
    """x * factor + y."""
    return make("add", (make("mul", (x, i64(factor))), y))


def is_float_sum(group: Carried) -> bool:
    """Whether additions of the group round, so that their order counts."""
    return group.combine == "add" and group.vars[0].dtype in ("f32", "f64", "c64", "c128")


def two_sum(new: Fresh, x: Expr, y: Expr) -> tuple[list[Stmt], Expr, Expr]:
    """s = x + y and what rounding loses (Knuth, The Art of Computer Programming 2)."""
    names = [new.var(Var(name, x.dtype)) for name in ("x", "y", "s", "v", "lost")]
    a, b, s, v, lost = map(Read, names)
    left = make("sub", (a, make("sub", (s, v))))
    values = (x, y, make("add", (a, b)), make("sub", (s, a)), make("add", (left, make("sub", (b, v)))))
    return [Let(name, value) for name, value in zip(names, values)], s, lost


def corrected(total: Expr, error: Expr) -> Expr:
    """total + error, the error left out where the total overflowed and made it NaN."""
    return make("add", (total, make("select", (make("ne", (error, error)), const(error.dtype, 0.0), error))))


class Descent:
    """One reduction over `count` columns at a time, at most `capacity`."""

    def __init__(self, new: Fresh, reduce: Loop, place: Place, count: Expr, capacity: int) -> None:
        self.new, self.reduce, self.place, self.count = new, reduce, place, count
        self.capacity = capacity
        self.sums = [is_float_sum(group) for group in reduce.carried for _ in group.vars]

    @property
    def vars(self) -> list[Var]:
        """The running values."""
        return [v for group in self.reduce.carried for v in group.vars]

    def down(self, first: Expr, height: Expr, most: int) -> tuple[list[Stmt], list[Buffer]]:
        """`height` rows, at most `most`, from `first` on: statements, and scratch rows where the results are then."""
        scratch = self._scratch("acc")
        if any(self.sums) and most > BLOCK:
            return self._in_blocks(scratch, first, height), scratch
        return [self._cleared(scratch), *self._added(scratch, first, height)], scratch

    def _scratch(self, name: str) -> list[Buffer]:
        return [self.new.buffer(name, v.dtype, self.capacity, "local") for v in self.vars]

    def _across(self, j: Var, body: Sequence[Stmt]) -> Loop:
        return Loop(j, self.count, "vector", tuple(body))

    def _cleared(self, scratch: list[Buffer], chosen: Sequence[bool] | None = None) -> Loop:
        """What leaves all it is combined with as it is, in the scratch rows or the chosen ones."""
        j = Var("j", "i64")
        values = [value for group in self.reduce.carried for value in neutrals(group) or ()]
        flags = chosen or [True] * len(scratch)
        return self._across(j, [Store(b, Read(j), value) for b, value, flag in zip(scratch, values, flags) if flag])

    def _added(self, scratch: list[Buffer], first: Expr, height: Expr) -> list[Stmt]:
        """`height` rows from `first` on, combined with what is in `scratch`."""
        work = sum(isinstance(x, Op) for s in (*self.reduce.body, self.reduce) for x in nodes(s))
        step = max(1, min(ROWS_AT_ONCE, OPS // max(work, 1)))
        q = Var("q", "i64")
        result: list[Stmt] = []
        whole = make("floordiv", (height, i64(step)))
        if not isinstance(whole, Const) or whole.value:
            rows = self._step(scratch, times_plus(Read(q), step, first), step)
            result.append(Loop(q, whole, "sequential", (rows,)))
        rest = i64(0) if divisor(height, {}) % step == 0 else make("floormod", (height, i64(step)))
        if not isinstance(rest, Const) or rest.value:
            last = make("sub", (make("add", (first, height)), rest))
            one = self._step(scratch, make("add", (last, Read(q))), 1)
            result.append(Loop(q, rest, "sequential", (one,)))
        return result

    def _step(self, scratch: list[Buffer], row: Expr, count: int) -> Loop:
        """scratch[j] combined with `count` rows."""
        j = Var("j", "i64")
        lets, here = self.place(j)
        shared = Substitute(here, self.new.var)
        body: list[Stmt] = list(shared.block(tuple(lets)))
        values: list[Expr] = []
        for var, buffer in zip(self.vars, scratch):
            pinned = self.new.var(var)
            body.append(Let(pinned, Load(buffer, Read(j))))
            values.append(Read(pinned))
        terms = plain_terms(self.reduce)
        updates = terms or [update for group in self.reduce.carried for update in group.updates]
        added: list[list[Expr]] = [[value] for value in values]
        for k in range(count):
            now = {**shared.values, self.reduce.var: make("add", (row, i64(k))), **dict(zip(self.vars, values))}
            copy = Substitute(now, self.new.var)
            body += copy.block(self.reduce.body)
            following = []
            for var, update in zip(self.vars, updates):
                pinned = self.new.var(var)
                body.append(Let(pinned, copy.rewrite(update)))
                following.append(Read(pinned))
            if terms is None:
                values = list(following)
            for several, value in zip(added, following):
                several.append(value)
        if terms is not None:  # the rows in pairs, so that chains of additions are short
            values = [make("add", (several[0], pairwise(several[1:]))) for several in added]
        body += [Store(buffer, Read(j), value) for buffer, value in zip(scratch, values)]
        return self._across(j, body)

    def _in_blocks(self, scratch: list[Buffer], first: Expr, height: Expr) -> list[Stmt]:
        """Float sums of blocks of rows are added up, then what rounding lost; other reductions go on through blocks."""
        number = Var("block", "i64")
        offset = make("mul", (Read(number), i64(BLOCK)))
        here = make("add", (first, offset))
        size: Expr = i64(BLOCK)
        if not isinstance(height, Const) or height.value % BLOCK:
            size = make("min", (size, make("sub", (height, offset))))
        count = make("floordiv", (make("add", (height, i64(BLOCK - 1))), i64(BLOCK)))
        j = Var("j", "i64")
        start: list[Stmt] = []
        added: list[Stmt] = []
        finish: list[Stmt] = []
        for part in [part for part, flag in zip(scratch, self.sums) if flag]:
            total, error = (self.new.buffer(name, part.dtype, self.capacity, "local") for name in ("total", "error"))
            start += [Store(b, Read(j), const(b.dtype, v)) for b, v in ((total, -0.0), (error, 0.0))]
            lets, s, lost = two_sum(self.new, Load(total, Read(j)), Load(part, Read(j)))
            added += [*lets, Store(error, Read(j), make("add", (Load(error, Read(j)), lost))), Store(total, Read(j), s)]
            finish.append(Store(part, Read(j), corrected(Load(total, Read(j)), Load(error, Read(j)))))
        block = (self._cleared(scratch, self.sums), *self._added(scratch, here, size), self._across(j, added))
        others = [not flag for flag in self.sums]
        first_of_all = [self._cleared(scratch, others)] if any(others) else []
        blocks = Loop(number, count, "sequential", block)
        return [*first_of_all, self._across(j, start), blocks, self._across(j, finish)]
