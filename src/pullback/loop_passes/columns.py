"""Columns: long reductions down the columns of an array read it row by row, with the running results in scratch space.

Needs: math expanded, indices simplified; comes before `vectorize`, whose lanes would go down some columns and come back
for the next ones, so that each row of the array is visited many times, a few lines of the cache at a time. Guarantees:
what is added to what depends on extents alone. Sums of floats are made of blocks of BLOCK rows, whose results are added
with the rounding errors kept, as in long sums along rows.

    parallel j < 1000 {                       threads t < 8 {         (pieces of rows, strips of columns)
      reduce r < 1000 -> s { x[r*1000+j] }      vector j < 1000 { acc[j] = -0 }
      y[j] = s                            =>    sequential q < 16 {
    }                                             vector j < 1000 { acc[j] = acc[j] + x[..] + (7 more rows) }
                                                }
                                                vector j < 1000 { partial[t*1000 + j] = acc[j] }
                                              }
                                              parallel j < 1000 { reduce t < 8 -> s { partial[t*1000 + j] }; y[j] = s }
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..loop_ir.fold import const, make
from ..loop_ir.ir import Buffer, Carried, Const, Expr, Function, Let, Load, Loop, Op, Read, Stmt, Store, Var
from ..loop_ir.types import ITEMSIZE
from ..loop_ir.visit import Substitute, accessed, loaded, nodes, stored, with_nests
from ._fresh import Fresh
from ._partial import combining, neutrals
from .cost import NANOSECONDS, Vector, bytes_touched, cost

COLUMNS = 64  # fewer are held in registers, all of them at once
STRIP = 2048  # columns that are walked together: some pages of a row, and scratch rows that stay in the first cache
BYTES = 1 << 20  # that a reduction reads over all columns: less stays in the cache, and is not worth the code
FAR = 16  # elements from row to row
ROWS = 8  # added to a scratch row at a time
OPS = 24  # of all those rows
BLOCK = 128  # rows of a float sum between two compensated additions
PIECE = 20_000.0  # ns of work that one thread takes at a time
THRESHOLD = 30_000.0  # ns: below this, waking threads costs more than it saves
TASKS = 16  # pieces that keep any machine we know busy
LANES = 8  # nominal


def columns(function: Function) -> Function:
    """The function with long reductions down columns walked row by row."""
    work = _Columns(function)
    body = with_nests(function.body, work.nest)
    return Function(function.name, (*function.buffers, *work.new.buffers), body) if work.new.buffers else function


class _Columns:
    def __init__(self, function: Function) -> None:
        self.new = Fresh("c", function)

    def nest(self, loop: Loop) -> list[Stmt]:
        chain = _chain(loop) if loop.role == "parallel" else None
        if chain is None:
            return [loop]
        column = chain[-1]
        at = next((k for k, stmt in enumerate(column.body) if isinstance(stmt, Loop)), -1)
        lets, reduce = column.body[:at], column.body[at]
        if at < 0 or not isinstance(reduce, Loop) or not _is_long(column, lets, reduce):
            return [loop]
        walk = _Walk(self.new, chain, lets, reduce)
        if not walk.fits:
            return [loop]
        return [walk.rows(), walk.combined(column.body[at + 1 :])]


def _chain(loop: Loop) -> list[Loop] | None:
    """`loop` and the parallel loops that stand alone in one another; None if an extent is not known."""
    chain = [loop]
    while len(chain[-1].body) == 1 and isinstance(inner := chain[-1].body[0], Loop) and inner.role == "parallel":
        chain.append(inner)
    return chain if all(isinstance(each.extent, Const) and each.extent.value for each in chain) else None


def _is_long(column: Loop, lets: Sequence[Stmt], reduce: Loop) -> bool:
    """Whether `reduce` walks down columns that are neighbours along `column`, over much memory."""
    if reduce.role != "reduce" or not reduce.carried or not isinstance(reduce.extent, Const):
        return False
    if _extent(column) < COLUMNS or not all(isinstance(stmt, Let) for stmt in lets):
        return False
    if not all(isinstance(stmt, (Let, Store)) for stmt in reduce.body) or cost(lets) > LANES:
        return False
    if loaded((*lets, reduce)) & stored(reduce.body) or any(neutrals(group) is None for group in reduce.carried):
        return False
    if any(b.space == "local" for b in loaded((column,)) | stored((column,))):
        return False
    across, down = Vector(column), Vector(Loop(reduce.var, reduce.extent, "parallel", reduce.body))
    bytes_read = 0
    for buffer, index in accessed((*reduce.body, Loop(reduce.var, reduce.extent, "reduce", (), reduce.carried))):
        step = down.step(index)
        if step == 0:
            continue
        if across.step(index) not in (0, 1, -1) or (step is not None and 0 < abs(step) < FAR):
            return False
        if across.step(index) != 0:
            bytes_read += ITEMSIZE[buffer.dtype]
    return bytes_read * _extent(column) * _extent(reduce) >= BYTES


def _extent(loop: Loop) -> int:
    assert isinstance(loop.extent, Const)
    return int(loop.extent.value)


def _is_float_sum(group: Carried) -> bool:
    return group.combine == "add" and group.vars[0].dtype in ("f32", "f64")


def _i64(value: int) -> Const:
    return const("i64", value)


def _times_plus(x: Expr, factor: int, y: Expr) -> Expr:
    return make("add", (make("mul", (x, _i64(factor))), y))


class _Walk:
    """One such reduction: how it is cut, and the two nests that take its place."""

    def __init__(self, new: Fresh, chain: list[Loop], lets: Sequence[Stmt], reduce: Loop) -> None:
        self.new, self.chain, self.lets, self.reduce = new, chain, tuple(lets), reduce
        self.outer = prod(_extent(each) for each in chain[:-1])
        self.width, self.height = _extent(chain[-1]), _extent(reduce)
        strips = -(-self.width // STRIP)
        self.strip = self.width if strips == 1 else -(-self.width // (strips * COLUMNS)) * COLUMNS
        self.strips = -(-self.width // self.strip)
        whole = self.width % self.strip == 0
        # Strips overlap, which what is stored beside the results would not stand if it were changed in place.
        self.fits = whole or not stored(reduce.body)
        time = max(NANOSECONDS * cost((chain[0],)) / LANES, 0.05 * bytes_touched((chain[0],)))
        tasks = self.outer * self.strips
        pieces = 1
        if tasks < TASKS and time > THRESHOLD:
            pieces = max(1, min(round(time / PIECE) // tasks, 4 * TASKS // tasks, self.height // COLUMNS))
        unit = BLOCK
        if self.height < 2 * BLOCK * pieces:  # no piece has more than one block
            unit, pieces = ROWS, max(pieces, -(-self.height // BLOCK))
        self.piece = -(-self.height // (pieces * unit)) * unit
        self.pieces = -(-self.height // self.piece)
        self.threads = time > THRESHOLD and tasks * self.pieces > 1
        self.sums = all(map(_is_float_sum, reduce.carried))
        count = self.pieces * self.outer * self.width
        self.partials = [new.buffer("partial", v.dtype, count) for v in self.vars] if self.fits else []

    @property
    def vars(self) -> list[Var]:
        return [v for group in self.reduce.carried for v in group.vars]

    # The walk over the rows.

    def rows(self) -> Loop:
        """The nest that writes a partial result of each piece of rows for each column."""
        task, flat = Var("task", "i64"), Var("flat", "i64")
        body: list[Stmt] = []
        strip: Expr = make("floormod", (Read(task), _i64(self.strips)))
        rest = make("floordiv", (Read(task), _i64(self.strips)))
        piece = make("floormod", (rest, _i64(self.pieces)))
        body.append(Let(flat, make("floordiv", (rest, _i64(self.pieces)))))
        count = Read(flat)
        position: dict[Var, Expr] = {}
        left: Expr = count
        for each in reversed(self.chain[:-1]):
            position[each.var] = make("floormod", (left, each.extent))
            left = make("floordiv", (left, each.extent))
        start = make("mul", (strip, _i64(self.strip)))
        if self.width % self.strip:
            start = make("min", (start, _i64(self.width - self.strip)))
        first = make("mul", (piece, _i64(self.piece)))
        height: Expr = _i64(self.piece)
        if self.piece * self.pieces != self.height:
            height = make("min", (height, make("sub", (_i64(self.height), first))))
        place = _times_plus(piece, self.outer, count)
        names = {"start": start, "first": first, "height": height, "place": make("mul", (place, _i64(self.width)))}
        pinned: dict[str, Expr] = {}
        for name, value in names.items():
            if isinstance(value, Const):
                pinned[name] = value
                continue
            var = Var(name, "i64")
            body.append(Let(var, value))
            pinned[name] = Read(var)
        scratch = results = self._scratch("acc")
        if self.sums and self.piece > BLOCK:
            totals, errors = self._scratch("total"), self._scratch("error")
            body += self._in_blocks(scratch, totals, errors, position, pinned)
            results = totals
        else:
            body.append(self._cleared(scratch))
            body += self._added(scratch, position, pinned["start"], pinned["first"], pinned["height"])
        j = Var("j", "i64")
        to = make("add", (make("add", (pinned["place"], pinned["start"])), Read(j)))
        stores = tuple(Store(b, to, Load(r, Read(j))) for b, r in zip(self.partials, results))
        body.append(Loop(j, _i64(self.strip), "vector", stores))
        role = "threads" if self.threads else "parallel"
        grain = (("grain", 1),) if self.threads else ()
        loop = Loop(task, _i64(self.outer * self.pieces * self.strips), role, tuple(body), (), grain)  # type: ignore[arg-type]
        (renamed,) = Substitute({}, self.new.var).block((loop,))
        assert isinstance(renamed, Loop)
        return renamed

    def _scratch(self, name: str) -> list[Buffer]:
        return [self.new.buffer(name, v.dtype, self.strip, "local") for v in self.vars]

    def _cleared(self, scratch: list[Buffer]) -> Loop:
        j = Var("j", "i64")
        values = [value for group in self.reduce.carried for value in neutrals(group) or ()]
        stores = tuple(Store(b, Read(j), value) for b, value in zip(scratch, values))
        return Loop(j, _i64(self.strip), "vector", stores)

    def _added(
        self, scratch: list[Buffer], position: dict[Var, Expr], start: Expr, first: Expr, height: Expr
    ) -> list[Stmt]:
        """`height` rows from `first` on, combined with what is in `scratch`."""
        work = sum(isinstance(x, Op) for s in (*self.reduce.body, self.reduce) for x in nodes(s))
        step = max(1, min(ROWS, OPS // max(work, 1)))
        q = Var("q", "i64")
        rows = self._step(scratch, position, start, _times_plus(Read(q), step, first), step)
        result: list[Stmt] = [Loop(q, make("floordiv", (height, _i64(step))), "sequential", (rows,))]
        rest = make("floormod", (height, _i64(step)))
        if not isinstance(rest, Const) or rest.value:
            last = make("sub", (make("add", (first, height)), rest))
            one = self._step(scratch, position, start, make("add", (last, Read(q))), 1)
            result.append(Loop(q, rest, "sequential", (one,)))
        return result

    def _step(self, scratch: list[Buffer], position: dict[Var, Expr], start: Expr, row: Expr, count: int) -> Loop:
        """scratch[j] combined with `count` rows."""
        j = Var("j", "i64")
        here = {**position, self.chain[-1].var: make("add", (start, Read(j)))}
        shared = Substitute(here, self.new.var)
        body: list[Stmt] = list(shared.block(self.lets))
        values: list[Expr] = []
        for var, buffer in zip(self.vars, scratch):
            pinned = self.new.var(var)
            body.append(Let(pinned, Load(buffer, Read(j))))
            values.append(Read(pinned))
        updates = [update for group in self.reduce.carried for update in group.updates]
        for k in range(count):
            now = {**shared.values, self.reduce.var: make("add", (row, _i64(k))), **dict(zip(self.vars, values))}
            copy = Substitute(now, self.new.var)
            body += copy.block(self.reduce.body)
            following = []
            for var, update in zip(self.vars, updates):
                pinned = self.new.var(var)
                body.append(Let(pinned, copy.rewrite(update)))
                following.append(Read(pinned))
            values = list(following)
        body += [Store(buffer, Read(j), value) for buffer, value in zip(scratch, values)]
        return Loop(j, _i64(self.strip), "vector", tuple(body))

    def _in_blocks(
        self,
        scratch: list[Buffer],
        totals: list[Buffer],
        errors: list[Buffer],
        position: dict[Var, Expr],
        pinned: dict[str, Expr],
    ) -> list[Stmt]:
        """Sums of blocks of rows, added to `totals`; then what rounding lost is added to those."""
        number, height = Var("block", "i64"), pinned["height"]
        offset = make("mul", (Read(number), _i64(BLOCK)))
        here = make("add", (pinned["first"], offset))
        size: Expr = _i64(BLOCK)
        if not isinstance(height, Const) or height.value % BLOCK:
            size = make("min", (size, make("sub", (height, offset))))
        count = make("floordiv", (make("add", (height, _i64(BLOCK - 1))), _i64(BLOCK)))
        j = Var("j", "i64")
        added: list[Stmt] = []
        for total, error, part in zip(totals, errors, scratch):
            lets, s, lost = self._two_sum(Load(total, Read(j)), Load(part, Read(j)))
            added += [*lets, Store(error, Read(j), make("add", (Load(error, Read(j)), lost))), Store(total, Read(j), s)]
        start = Loop(
            j,
            _i64(self.strip),
            "vector",
            tuple(Store(b, Read(j), const(b.dtype, v)) for bs, v in ((totals, -0.0), (errors, 0.0)) for b in bs),
        )
        block = (
            self._cleared(scratch),
            *self._added(scratch, position, pinned["start"], here, size),
            Loop(j, _i64(self.strip), "vector", tuple(added)),
        )
        finish = tuple(
            Store(total, Read(j), _corrected(Load(total, Read(j)), Load(error, Read(j))))
            for total, error in zip(totals, errors)
        )
        return [start, Loop(number, count, "sequential", block), Loop(j, _i64(self.strip), "vector", finish)]

    def _two_sum(self, x: Expr, y: Expr) -> tuple[list[Stmt], Expr, Expr]:
        """s = x + y and what rounding loses (Knuth, The Art of Computer Programming 2)."""
        names = [self.new.var(Var(name, x.dtype)) for name in ("x", "y", "s", "v", "lost")]
        a, b, s, v, lost = map(Read, names)
        left = make("sub", (a, make("sub", (s, v))))
        values = (x, y, make("add", (a, b)), make("sub", (s, a)), make("add", (left, make("sub", (b, v)))))
        return [Let(name, value) for name, value in zip(names, values)], s, lost

    # Its results.

    def combined(self, rest: Sequence[Stmt]) -> Loop:
        """The nest that combines the partial results, and whatever else was done for each column."""
        index: Expr = _i64(0)
        for each in self.chain:
            index = make("add", (make("mul", (index, each.extent)), Read(each.var)))
        piece = Var("piece", "i64")
        at = _times_plus(Read(piece), self.outer * self.width, index)
        groups = self.reduce.carried
        body: list[Stmt] = []
        if self.sums:
            carried, finish = [], []
            for group, partial in zip(groups, self.partials):
                dtype = group.vars[0].dtype
                names = total, error = tuple(self.new.var(Var(name, dtype)) for name in ("total", "error"))
                results = tuple(map(self.new.var, names))
                added, s, lost = self._two_sum(Read(total), Load(partial, at))
                body += added
                updates = (s, make("add", (Read(error), lost)))
                inits = (const(dtype, -0.0), const(dtype, 0.0))
                carried.append(Carried(names, inits, updates, results))
                corrected = _corrected(*map(Read, results))
                finish.append(Let(group.results[0], make("add", (group.inits[0], corrected))))
            loop: Stmt = Loop(piece, _i64(self.pieces), "sequential", tuple(body), tuple(carried))
            body = [loop, *finish]
        else:
            loads = iter([Load(buffer, at) for buffer in self.partials])
            merged = tuple(combining(group, [next(loads) for _ in group.vars]) for group in groups)
            body = [Loop(piece, _i64(self.pieces), "reduce", (), merged)]
        inner: tuple[Stmt, ...] = (*self.lets, *body, *rest)
        for each in reversed(self.chain):
            inner = (Loop(each.var, each.extent, each.role, inner, each.carried, each.attrs),)
        (result,) = inner
        assert isinstance(result, Loop)
        return result


def _corrected(total: Expr, error: Expr) -> Expr:
    """total + error, the error left out where the total overflowed and made it NaN."""
    return make("add", (total, make("select", (make("ne", (error, error)), const(error.dtype, 0.0), error))))
