"""Strips (strip-mining): a nest that goes down the same columns several times takes a strip of columns at a time, row
by row.

Needs: math expanded, indices simplified. Lanes of the nest as it is written go down a few columns, a line of the cache
from each row, several times. Guarantees: what is added to what depends on extents alone. What later loops
need of a column (a maximum, a mean) lies in a row of scratch space; a strip is as wide as the second cache holds.

    parallel j < 1000 {                       parallel strip < 4 {
      reduce r < 500 -> m { x[r*1000+j] }       sequential r < 500 { vector j < 256 { acc[j] = max(acc[j], x[...]) } }
      let t = 2 * m                       =>    vector j < 256 { row[j] = 2 * acc[j] }
      parallel r < 500 {                        parallel r < 500 {
        y[r*1000+j] = x[r*1000+j] - t             vector j < 256 { y[...] = x[...] - row[j] }
      }                                         }
    }                                         }

A nest with one reduction is `columns`' own, which also cuts the rows into pieces. Columns that no cache holds are
quicker with each loop by itself (fission.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from math import prod

from pullback.loops.emit.access import SCRATCH_BYTES
from pullback.loops.ir.fold import make
from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.ir import SQUARE, Buffer, Const, Expr, Let, Load, Loop, Read, Stmt, Store, Var
from pullback.loops.ir.types import ITEMSIZE
from pullback.loops.ir.visit import (
    Rewriter,
    Substitute,
    accessed,
    loaded,
    nodes,
    reads,
    statements,
    stored,
)
from pullback.loops.schedule.apply.columns import FAR_ELEMENTS
from pullback.loops.schedule.apply.descent import Descent, i64, times_plus
from pullback.loops.schedule.apply.partials import merged, neutrals
from pullback.loops.schedule.apply.pieces import Pieces
from pullback.loops.schedule.apply.short_rows import with_rows_apart
from pullback.loops.schedule.cost import vector_of
from pullback.loops.schedule.machine import CORES, NOMINAL
from pullback.loops.schedule.sketch import Form, part_of, row_by_row, tasks
from pullback.loops.schedule.space import Axis, accesses_of, axis_of, known_extent

COLUMNS = 64  # a strip is a multiple of so many: some lines of the cache from each row
ROOM = NOMINAL.second.bytes // 2  # bytes that a strip takes of the second cache
NEAR = NOMINAL.first.bytes // 2  # bytes that one of short rows takes of the first


def strips(new: Fresh, chain: Sequence[Loop]) -> Form | None:
    """The nest walked by strips; None if it does not go down neighbouring columns more than once."""
    if not _suits(chain[-1]):
        return None
    strip = _Strip(new, chain, ROOM)
    return Form(lambda: [strip.nest()], [strip.sketch()])


def short_rows(new: Fresh, chain: Sequence[Loop]) -> Form | None:
    """The nest with a row in each lane; None if it does not go through short rows more than once."""
    column = with_rows_apart(new, chain)
    return None if column is None else Form(lambda: [_Strip(new, [*chain[:-1], column], NEAR).nest()])


def _suits(column: Loop) -> bool:
    """Whether iterations of `column` are neighbouring columns, down which its loops go."""
    loops = [stmt for stmt in column.body if isinstance(stmt, Loop)]
    if len(loops) < 2 or known_extent(column) < COLUMNS:
        return False
    if not all(isinstance(stmt, (Let, Store, Loop)) for stmt in column.body):
        return False
    across = Axis(column)
    own = _scratch_of(column)
    if any(b.size * ITEMSIZE[b.dtype] * COLUMNS > SCRATCH_BYTES for b in own):
        return False
    far = False
    for loop in loops:
        if not isinstance(loop.extent, Const) or not all(isinstance(stmt, (Let, Store)) for stmt in loop.body):
            return False
        if loop.role not in ("parallel", "reduce") or (loop.role == "reduce") != bool(loop.carried):
            return False
        if any(neutrals(group) is None for group in loop.carried):
            return False
        down = axis_of(loop)
        for buffer, index in accesses_of(loop):
            step = across.step(index)
            if buffer in own:
                if step != 0:
                    return False
                continue
            if step not in (0, 1, -1):
                return False
            along = down.step(index)
            if step and along != 0:
                if along is not None and abs(along) < FAR_ELEMENTS:
                    return False
                far = True
    return far and all(
        across.step(index) in (0, 1, -1)
        for buffer, index in accessed(tuple(s for s in column.body if not isinstance(s, Loop)))
        if buffer not in own
    )


def _scratch_of(column: Loop) -> Set[Buffer]:
    """Scratch space that each column has to itself."""
    return {b for b in loaded((column,)) | stored((column,)) if b.space == "local"}


class _Strip:
    """One such nest, cut into strips of columns."""

    def __init__(self, new: Fresh, chain: Sequence[Loop], room: int) -> None:
        self.new, self.chain, self.column, self.room = new, chain, chain[-1], room
        self.scratch = _scratch_of(self.column)
        self.pieces = Pieces(chain, self._width(prod(known_extent(each) for each in chain[:-1])))
        self.width, self.count = self.pieces.width, self.pieces.count
        self.rows: dict[Var, Buffer] = {}  # where a value of each column of the strip lies
        self.recomputed: list[Let] = []  # indices, which are not worth memory
        self.lane = Var("lane", "i64")  # number of a column in its strip
        scratch = sorted(self.scratch, key=lambda b: b.name)  # a set's order differs between processes
        wide = {b: new.buffer(b.name, b.dtype, b.size * self.width, "local") for b in scratch}
        self.body = _Widen(wide, self.width, self.lane).block(self.column.body) if wide else self.column.body
        self.needed = self._needed()

    def _width(self, outer: int) -> int:
        """Columns of a strip: what there is room for of all that the loops read and write."""
        total = known_extent(self.column)
        loops = [stmt for stmt in self.column.body if isinstance(stmt, Loop)]
        height = max(known_extent(loop) for loop in loops)
        across = vector_of(self.column)
        walked = {b for b, index in accessed(loops) if b in self.scratch or across.step(index) != 0}
        # Loops that go along what all columns share walk nothing: they have the whole room.
        width = self.room // max(height * sum(ITEMSIZE[b.dtype] for b in walked), 1)
        width = min([width, *(SCRATCH_BYTES // (b.size * ITEMSIZE[b.dtype]) for b in self.scratch)])
        if outer < CORES:
            width = min(width, -(-total // -(-CORES // outer)))
        return max(COLUMNS, width // COLUMNS * COLUMNS)

    def _needed(self) -> set[Var]:
        """Values of a column that a loop reads, or another run of statements than the one that makes it."""
        needed: set[Var] = set()
        run: set[Var] = set()
        for stmt in self.body:
            used = {v for s in statements((stmt,)) for v in reads(s)}
            if isinstance(stmt, Loop):
                run = set()
            needed |= used - run
            if isinstance(stmt, Let):
                run.add(stmt.var)
        return needed

    def sketch(self) -> Loop:
        """The loop over strips, and what goes down each."""
        body: list[Stmt] = []
        run: list[Stmt] = []
        for stmt in self.column.body:
            if not isinstance(stmt, Loop):
                run.append(stmt)
                continue
            if run:
                body.append(part_of(self.column, self.width, 1, "vector", run))
            run = []
            body.append(row_by_row(self.column, self.width, (), stmt, known_extent(stmt)))
        if run:
            body.append(part_of(self.column, self.width, 1, "vector", run))
        return tasks([*self.chain[:-1], part_of(self.column, self.pieces.number, self.width, "parallel", ())], body)

    def nest(self) -> Loop:
        """The loop over strips."""
        body: list[Stmt] = []
        run: list[Stmt] = []
        for stmt in self.body:
            if not isinstance(stmt, Loop):
                run.append(stmt)
                continue
            body += self._across(run)
            run = []
            body += self._reduction(stmt) if stmt.role == "reduce" else self._stores(stmt)
        body += self._across(run)
        return self.pieces.around(self.new, body)

    def _place(self, j: Var, used: Set[Var]) -> tuple[list[Stmt], dict[Var, Expr]]:
        """What stands for the variables of a column at place `j` of the strip, and the statements that this needs."""
        here = {**self.pieces.position, self.column.var: make("add", (self.pieces.first, Read(j))), self.lane: Read(j)}
        wanted = set(used)
        again: list[Stmt] = []
        for let in reversed(self.recomputed):
            if let.var in wanted:
                wanted.update(reads(let))
                again.append(let)
        lets: list[Stmt] = again[::-1]
        lets += [Let(var, Load(row, Read(self.lane))) for var, row in self.rows.items() if var in used]
        return lets, here

    def _kept(self, var: Var) -> Buffer:
        """The row where a value of each column lies from now on."""
        if var not in self.rows:
            self.rows[var] = self.new.buffer(var.name, var.dtype, self.width, "local")
        return self.rows[var]

    def _across(self, run: Sequence[Stmt]) -> list[Stmt]:
        """Statements of each column, for a strip of them; what is read later is kept in rows."""
        known = {each.var for each in self.chain} | {let.var for let in self.recomputed}
        kept: list[Var] = []
        rest: list[Stmt] = []
        for stmt in run:
            if isinstance(stmt, Let):
                if (
                    stmt.var.dtype == "i64"
                    and known.issuperset(reads(stmt))
                    and not any(isinstance(x, Load) for x in nodes(stmt))
                ):
                    self.recomputed.append(stmt)
                    known.add(stmt.var)
                    continue
                if stmt.var in self.needed:
                    kept.append(stmt.var)
            rest.append(stmt)
        if not kept and not any(isinstance(stmt, Store) for stmt in rest):
            return []
        j = Var("j", "i64")
        before, here = self._place(j, {v for stmt in rest for v in reads(stmt)})
        return [
            self._vector(j, [*before, *rest, *(Store(self._kept(v), Read(self.lane), Read(v)) for v in kept)], here)
        ]

    def _stores(self, loop: Loop) -> list[Stmt]:
        """A loop down a column, for a strip of them."""
        j, row = Var("j", "i64"), self.new.var(loop.var)
        before, here = self._place(j, {v for stmt in loop.body for v in reads(stmt)})
        if SQUARE in loop.attrs:
            return [self._vector(j, [*before, loop], here)]
        return [
            Loop(row, loop.extent, "parallel", (self._vector(j, [*before, *loop.body], {**here, loop.var: Read(row)}),))
        ]

    def _reduction(self, loop: Loop) -> list[Stmt]:
        """A reduction down a column, for a strip of them."""
        used = {v for stmt in (*loop.body, loop) for v in reads(stmt)}
        descent = Descent(self.new, loop, lambda j: self._place(j, used), self.count, self.width)
        steps, rows = descent.down(i64(0), loop.extent, known_extent(loop))
        j = Var("j", "i64")
        before, here = self._place(j, used)
        found = iter([Load(row, Read(self.lane)) for row in rows])
        body = list(before)
        for group in loop.carried:
            values = merged(group, group.inits, [next(found) for _ in group.vars])
            body += [
                Store(self._kept(v), Read(self.lane), x) for v, x in zip(group.results, values) if v in self.needed
            ]
        return [*steps, self._vector(j, body, here)]

    def _vector(self, j: Var, body: Sequence[Stmt], here: dict[Var, Expr]) -> Loop:
        """A loop over the columns of the strip."""
        return Loop(j, self.count, "vector", Substitute(here, self.new.var).block(tuple(body)))


class _Widen(Rewriter):
    """Scratch space of one column becomes that of a strip of them: an element for each column `lane`."""

    def __init__(self, wide: Mapping[Buffer, Buffer], width: int, lane: Var) -> None:
        super().__init__()
        self.wide, self.width, self.lane = wide, width, lane

    def _at(self, index: Expr) -> Expr:
        return times_plus(index, self.width, Read(self.lane))

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.buffer in self.wide:
            return Load(self.wide[expr.buffer], self._at(expr.index))
        return expr

    def stmt(self, stmt: Stmt) -> list[Stmt]:
        if isinstance(stmt, Store) and stmt.buffer in self.wide:
            return [Store(self.wide[stmt.buffer], self._at(stmt.index), stmt.value)]
        return [stmt]
