"""Short rows: what goes through each of many short rows several times has a row in each lane, not along the lanes.

    parallel i < 1000 {                                  parallel strip < 8 {
      reduce r < 10 -> m { x[i*10 + r] }                   vector i < 128 { parallel r < 10 { p[r*128 + i] = x[..] } }
      parallel r < 10 { y[i*10 + r] = x[i*10 + r] - m }  =>  (as columns, of p and q: see strips.py)
    }                                                      vector i < 128 { parallel r < 10 { y[..] = q[r*128 + i] } }
                                                         }

Ten elements leave lanes idle, a reduction ends with a tree over the lanes, which is long where they hold values with
their places, and what is done once for each row is done for one row at a time. The copies are transposes in registers.
An element of such a loop may be a reduction of its own, as a distance is: along another row, or what all rows share.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from pullback.loops.ir.affine import interval, terms
from pullback.loops.ir.fold import const, make
from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.ir import SQUARE, Buffer, Combine, Const, Expr, Let, Load, Loop, Op, Read, Stmt, Store, Var
from pullback.loops.ir.visit import Rewriter, Substitute, accessed, nodes, statements, stored
from pullback.loops.schedule.space import Axis, accesses_of, axis_of, known_extent

MAX_ROW = 32  # elements of a row that is copied: more fill the lanes, or nearly; twice as many where places are sought
LEAST_ROWS = 64  # rows


def with_rows_apart(new: Fresh, chain: Sequence[Loop]) -> Loop | None:
    """The last loop of `chain`, over rows, with the rows it goes through copied to scratch space, and work there; None
    if it does not go through short rows that lie one after the other.
    """
    column = chain[-1]
    loops = [stmt for stmt in column.body if isinstance(stmt, Loop)]
    inner = [each for loop in loops for each in loop.body if isinstance(each, Loop)]
    pairs = any(isinstance(group.combine, Combine) for loop in loops for group in loop.carried)
    if len(loops) < (1 if pairs else 2) or known_extent(column) < LEAST_ROWS or not any(loop.carried for loop in loops):
        return None
    if not all(isinstance(stmt, (Let, Store, Loop)) for stmt in column.body):
        return None
    if not all(map(_is_short, loops)) or not all(map(_is_short_sum, inner)):
        return None
    found = _Rows(new, column, [*chain, *inner])
    if not all(map(found.takes, loops)):
        return None
    longest = max(known_extent(loop) for loop in (*loops, *inner))
    if (not found.rows and not found.alone) or (found.rows and not pairs and longest > MAX_ROW):
        return None
    copied = found.copied(loops)
    return None if copied is None else found.apart(new, copied)


class _Rows:
    """The rows that the loops of an iteration of `column` go through."""

    def __init__(self, new: Fresh, column: Loop, around: Sequence[Loop]) -> None:
        self.new, self.column, self.across = new, column, Axis(column)
        self.ranges = {each.var: (0, known_extent(each) - 1) for each in around}
        self.written_to = stored((column,))
        self.rows: dict[tuple, tuple[Buffer, Expr, int]] = {}  # the place of a row's first element, and its length
        self.of: dict[tuple[Buffer, Expr], tuple] = {}  # the row that an element is in; buffers share indices
        self.along: dict[tuple[Buffer, Expr], Var] = {}  # and what counts it there
        self.alone: dict[tuple[Buffer, Expr], Var] = {}  # elements that a whole loop reads, one for each row

    def takes(self, loop: Loop) -> bool:
        """Whether all that a loop touches is in rows, or the same for all of them, or in lanes already."""
        downs = {each: axis_of(each) for each in (loop, *(x for x in loop.body if isinstance(x, Loop)))}
        for buffer, index in accesses_of(loop):
            across = self.across.step(index)
            moving = [each for each, down in downs.items() if down.step(index) != 0]
            if len(moving) > 1 and across != 0:
                return False
            row = moving[0] if moving else loop
            down = downs[row].step(index)
            if across is None or down is None or (buffer.space == "local" and across):
                return False
            if across in (0, 1):
                if across and down:
                    return False
                continue
            if not (self._is_alone(buffer, index) if down == 0 else down == 1 and self._is_in_row(buffer, index, row)):
                return False
        return True

    def _is_alone(self, buffer: Buffer, index: Expr) -> bool:
        bounds = interval(index, self.ranges)
        if buffer in self.written_to or bounds is None or bounds[0] < 0 or bounds[1] >= buffer.size:
            return False
        self.alone.setdefault((buffer, index), self.new.var(Var("alone", buffer.dtype)))
        return True

    def _is_in_row(self, buffer: Buffer, index: Expr, row: Loop) -> bool:
        first = Substitute({row.var: const("i64", 0)}).rewrite(index)
        key, bounds = _key(buffer, first, self.ranges), interval(first, self.ranges)
        # Loads that only some elements perform may lie outside; all of a row is copied.
        if key is None or bounds is None or bounds[0] < 0 or bounds[1] + known_extent(row) > buffer.size:
            return False
        known = self.rows.get(key)
        self.rows[key] = (buffer, first, max(known_extent(row), 0 if known is None else known[2]))
        self.of[buffer, index], self.along[buffer, index] = key, row.var
        return True

    @property
    def written(self) -> set[Buffer]:
        """What rows are written to."""
        return self.written_to & {row[0] for row in self.rows.values()}

    def copied(self, loops: Sequence[Loop]) -> set[tuple] | None:
        """The rows that are read before all of them is written; None if one that is written cannot be apart."""
        of, rows, written = self.of, self.rows, self.written
        # Of a buffer that is written there is one row, which all go through as it is then.
        if any(sum(row[0] is buffer for row in rows.values()) != 1 for buffer in written):
            return None
        if any(buffer in written and (buffer, index) not in of for buffer, index in accessed(self.column.body)):
            return None
        copied: set[tuple] = set()
        filled: set[tuple] = set()
        for loop in loops:
            copied |= {of[x.buffer, x.index] for x in _loads(loop) if (x.buffer, x.index) in of} - filled
            stores = [of[s.buffer, s.index] for s in loop.body if isinstance(s, Store) and (s.buffer, s.index) in of]
            filled |= {key for key in stores if rows[key][2] == known_extent(loop)}
        if any(row[0] in written and key not in copied | filled for key, row in rows.items()):
            return None
        return copied

    def apart(self, new: Fresh, copied: set[tuple]) -> Loop:
        """The loop over rows on scratch space."""
        scratch = {key: new.buffer("row", row[0].dtype, row[2], "local") for key, row in self.rows.items()}
        inside = {place: (scratch[key], self.along[place]) for place, key in self.of.items()}
        body: list[Stmt] = [Let(var, Load(*place)) for place, var in self.alone.items()]
        body += [_copy(new, row, scratch[key], True) for key, row in self.rows.items() if key in copied]
        there, column = _There(inside, self.alone), self.column
        body += [there.loop(stmt) if isinstance(stmt, Loop) else stmt for stmt in column.body]
        written = self.written
        body += [_copy(new, row, scratch[key], False) for key, row in self.rows.items() if row[0] in written]
        return Loop(column.var, column.extent, column.role, tuple(body), (), column.attrs)


def _is_short(loop: Loop) -> bool:
    """Whether a loop goes along a short row, with nothing in it but statements and loops."""
    short = isinstance(loop.extent, Const) and 2 <= loop.extent.value <= 2 * MAX_ROW
    return short and all(isinstance(stmt, (Let, Store, Loop)) for stmt in loop.body)


def _is_short_sum(loop: Loop) -> bool:
    """Whether a loop reduces a short row, and does nothing else."""
    return _is_short(loop) and loop.role == "reduce" and all(isinstance(stmt, Let) for stmt in loop.body)


def _loads(loop: Loop) -> list[Load]:
    return [x for stmt in statements((loop,)) for x in nodes(stmt) if isinstance(x, Load)]


def _copy(new: Fresh, row: tuple[Buffer, Expr, int], scratch: Buffer, there: bool) -> Loop:
    """A row copied to scratch space (`there`) or back."""
    buffer, first, length = row
    k = new.var(Var("k", "i64"))
    place = make("add", (first, Read(k)))
    if there:
        store = Store(scratch, Read(k), Load(buffer, place))
    else:
        store = Store(buffer, place, Load(scratch, Read(k)))
    return Loop(k, const("i64", length), "parallel", (store,), (), (SQUARE,))


def _key(buffer: Buffer, index: Expr, loops: Container[Var]) -> tuple | None:
    """Equal for equal indices that are sums of multiples of the variables of `loops`; None for others."""
    found, constant = terms(index)
    parts: dict[Var, int] = {}
    for term in found:
        inner, factor = term, 1
        if isinstance(term, Op) and term.name == "mul" and isinstance(term.args[1], Const):
            inner, factor = term.args[0], term.args[1].value
        if not isinstance(inner, Read) or inner.var not in loops:
            return None
        parts[inner.var] = parts.get(inner.var, 0) + factor
    return (buffer, constant, *sorted(parts.items(), key=lambda part: part[0].name))


class _There(Rewriter):
    """Elements of rows are those of scratch space."""

    def __init__(
        self, rows: Mapping[tuple[Buffer, Expr], tuple[Buffer, Var]], alone: Mapping[tuple[Buffer, Expr], Var]
    ) -> None:
        super().__init__()
        self.rows, self.alone = rows, alone

    def loop(self, loop: Loop) -> Loop:
        """The loop on scratch space."""
        (result,) = self.block((loop,))
        assert isinstance(result, Loop)
        return result

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Load) and (expr.buffer, expr.index) in self.rows:
            buffer, var = self.rows[expr.buffer, expr.index]
            return Load(buffer, Read(var))
        if isinstance(expr, Load) and (expr.buffer, expr.index) in self.alone:
            return Read(self.alone[expr.buffer, expr.index])
        return expr

    def stmt(self, stmt: Stmt) -> list[Stmt]:
        if isinstance(stmt, Store) and (stmt.buffer, stmt.index) in self.rows:
            buffer, var = self.rows[stmt.buffer, stmt.index]
            return [Store(buffer, Read(var), stmt.value)]
        return [stmt]
