"""Split (index-set splitting): a loop whose conditions change at known iterations becomes one loop for each stretch in
between.

Needs: simplified indices. Guarantees: the same iterations in the same order, and in each part conditions that are
known. Concatenation, padding and shifting become plain copies; without this each lane asks whether it may load. The
body is repeated, so it is done only where masks are slow (elements of less than 4 bytes) or there is much to do, and
where the sides of a choice are long computations, as lanes would do both: random bits from two keys, joined. An axis of
a few elements that are computed differently disappears: `stack(..., axis=-1)`, the two words of a key. Where that
would be too much code, the longest stretch is cut out: the middle of a sum of 24 shifted arrays.

    parallel i < 2000 {                                      parallel i < 1500 {
      y[i] = select(lt(i, 1500), x[i], z[i - 1500])    =>      y[i] = x[i]
                                                             parallel i < 500 {
                                                               y[i + 1500] = z[i]

Where conditions change at the first and last few elements alone, as those of a stencil do, the parts are a vector at
each end that asks for each lane, and what is between them. Where all lanes ask alike, as in images whose channels are
last, both ends are one nest, which is not cut further: a depthwise convolution over 8 x 64 x 56 x 56 has three bodies
in place of nine, and compiles in 32 ms, before 55.

Measured: a stencil of 25 points on 512 x 512 pixels, padded by those of its edges, took 2 ms, now 0.35. Two joined
draws of 10,000 random words took 90 us where lanes did both, now 36. Concatenations and stacks of 10 to 32 pieces of
rows take a tenth of the time that they took when at most 8 parts were made. Maxima over windows of 3 x 3 at every
second place of 500 x 500, one row and one column of which reach over the edge: bytes 212 us, now 8, float32 65 and 19;
at every place 77, now 52.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, TypeGuard

from pullback.loops.ir.affine import terms
from pullback.loops.ir.fold import COMPARES, const, make
from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.ir import (
    RIM,
    STEPS,
    STEPS_EACH,
    STEPS_FROM,
    Buffer,
    Call,
    Carried,
    Const,
    Expr,
    Function,
    Load,
    Loop,
    Op,
    Read,
    Run,
    Stmt,
    Store,
    Var,
)
from pullback.loops.ir.kernels import OnOtherBuffers
from pullback.loops.ir.types import ITEMSIZE
from pullback.loops.ir.visit import (
    Substitute,
    access_nodes,
    expressions,
    fact,
    local_uses,
    nodes,
    statements,
    subexpressions,
    with_blocks,
)
from pullback.loops.schedule.cost import operations
from pullback.loops.schedule.machine import NOMINAL
from pullback.loops.schedule.space import Axis, extent_of
from pullback.util.record import NamedTuple

from .places import is_inside, places, ranges_of
from .simplify import simplify

MAX_PARTS = 64  # stretches of one loop: with more, only the longest stands apart
MAX_OPS = 400  # of all parts together
MOST_OPS = 4000  # the same where lanes that compute every side of a choice would take twice as long
MANY_ITERATIONS = 1 << 8  # iterations from which masks of wide elements are worth avoiding too
# Vectors of a loop whose ends are cut off: of a shorter one they are most of it, of a longer one next to nothing.
VECTORS_WITH_ENDS = 3, 256
# Iterations from which windows that reach beyond an edge are worth loops of their own, and the same where lanes that
# ask would load one by one.
WINDOWS = 1 << 17
STRIDED_WINDOWS = 1 << 13
MASKED = 7  # loads in whose time a lane asks whether it may load: 5 to 10
TURNS = 4  # kinds of elements that take turns along an axis: each is computed by itself, all in one pass
LONGEST_SHARE = 4  # one stretch is most of a loop if what is left is at most one such part
Ranges = Mapping[Var, tuple[int, int]]  # of indices of loops
# Iterations at each end of a loop that are one nest, in which conditions change, and how many times those are all.
ENDS, MIDDLE = 4, 16
LONG_SIDE = 16  # ops that only one side of a choice needs, from which it is not computed in vain


class _Part(NamedTuple):
    """A part of a loop."""

    var: Var
    conditions: Mapping[int, Sequence[int]]  # where conditions of the loop change
    start: int
    ranges: Ranges


def split(function: Function) -> Function:
    """The function with loops cut where their conditions change."""
    settled: dict[Stmt, int] = {}
    for _ in range(3):  # one level of nested loops at a time: what is known outside decides what is left inside
        splitter = _Split(settled, function)
        body = splitter.block(function.body, 1)
        if splitter.cuts:
            buffers = (*function.buffers, *splitter.new.buffers)
            function = simplify(Function(function.name, buffers, body), settled.keys())
        chosen = places(function, last=True)
        if not splitter.cuts and chosen is function:
            return function
        function = chosen
    return function


class _Split:
    def __init__(self, settled: dict[Stmt, int], function: Function) -> None:
        self.cuts = 0
        self.new = Fresh("p", function)
        self.locals = local_uses(function.body)
        self.settled = settled  # loops in which there is nothing to cut, with how often they run: not looked at again

    def block(self, body: Sequence[Stmt], trips: int) -> tuple[Stmt, ...]:
        result: list[Stmt] = []
        for stmt in body:
            match stmt:
                case Loop():
                    if self.settled.get(stmt) == trips:
                        result.append(stmt)
                        continue
                    cuts = _points(stmt, trips)
                    if cuts is not None and cuts.points:
                        self.cuts += 1
                        result += self.parts(stmt, cuts)
                        continue
                    before = self.cuts
                    inner = () if cuts is None else self.block(stmt.body, trips * extent_of(stmt))
                    if self.cuts == before:
                        self.settled[stmt] = trips
                    else:
                        stmt = Loop(stmt.var, stmt.extent, stmt.role, inner, stmt.carried, stmt.attrs)
                case _:
                    stmt = with_blocks(stmt, self.block, trips)
            result.append(stmt)
        return tuple(result)

    def parts(self, loop: Loop, cuts: _Cuts) -> list[Stmt]:
        """One loop for each stretch between points; carried values go from one to the next."""
        assert isinstance(loop.extent, Const)
        if cuts.both:
            return self.both_ends(loop, cuts.rim)
        if (rows := _between(loop)) is not None:
            turned = Loop(loop.var, loop.extent, loop.role, rows.body, (), loop.attrs)
            return [Loop(rows.var, rows.extent, rows.role, tuple(self.parts(turned, cuts)), (), rows.attrs)]
        edges = [0, *cuts.points, loop.extent.value]
        result: list[Stmt] = []
        carry = [tuple(group.inits) for group in loop.carried]
        own = self._own(loop)
        for k, start in enumerate(edges[:-1]):
            stop = edges[k + 1]
            last = stop == loop.extent.value
            var = self.new.var(loop.var)
            others = {b: self.new.buffer(b.name, b.dtype, b.size, "local") for b in own} if k else {}
            here = {loop.var: make("add", (Read(var), const("i64", start)))}
            copy = OnOtherBuffers(others, here, self.new.var) if others else Substitute(here, self.new.var)
            names = [tuple(map(self.new.var, group.vars)) for group in loop.carried]
            for group, fresh in zip(loop.carried, names):
                copy.values.update(zip(group.vars, map(Read, fresh)))
            body = copy.block(loop.body)
            groups = []
            for group, fresh, inits in zip(loop.carried, names, carry):
                updates = tuple(map(copy.rewrite, group.updates))
                results = group.results if last else tuple(map(self.new.var, group.results))
                groups.append(Carried(fresh, inits, updates, results, group.combine))
            carry = [tuple(map(Read, group.results)) for group in groups]
            attrs = _counted_from(loop, start)
            if stop - start == cuts.rim:
                attrs = (*attrs, RIM)
            result.append(Loop(var, const("i64", stop - start), loop.role, body, tuple(groups), attrs))
        return result

    def both_ends(self, loop: Loop, rim: int) -> list[Stmt]:
        """What is between `rim` iterations at each end, and one nest of these, in which conditions still change."""
        n = extent_of(loop)
        own = self._own(loop)
        result: list[Stmt] = []
        end, at = self.new.var(Var("end", "i64")), self.new.var(loop.var)
        ends = make("add", (make("mul", (Read(end), const("i64", n - rim))), Read(at)))
        middle = self.new.var(loop.var)
        for index in (make("add", (Read(middle), const("i64", rim))), ends):
            others = {b: self.new.buffer(b.name, b.dtype, b.size, "local") for b in own} if result else {}
            here = {loop.var: index}
            copy = OnOtherBuffers(others, here, self.new.var) if others else Substitute(here, self.new.var)
            body = copy.block(loop.body)
            if not result:
                result.append(Loop(middle, const("i64", n - 2 * rim), loop.role, body, (), loop.attrs))
                continue
            inner = Loop(at, const("i64", rim), loop.role, tuple(map(_at_the_rim, body)), (), (*loop.attrs, RIM))
            result.append(Loop(end, const("i64", 2), loop.role, (inner,), (), (RIM,)))
        return result

    def _own(self, loop: Loop) -> list[Buffer]:
        """Scratch space that iterations of a parallel loop have to themselves: of each part, or threads could not share
        the parts out.
        """
        inside = local_uses((loop,)) if loop.role == "parallel" else {}
        if any(isinstance(stmt, (Call, Run)) for stmt in statements((loop,))):
            return []
        return [buffer for buffer, count in inside.items() if count == self.locals[buffer]]


class _Cuts(NamedTuple):
    """Where a loop is cut."""

    points: Sequence[int] = ()
    rim: int = 0  # extent of parts, at the ends, in which conditions still change
    both: bool = False  # whether these are one nest


_NONE = _Cuts()


def _points(loop: Loop, trips: int) -> _Cuts | None:
    """The iterations at which conditions in `loop` change, if cutting there is worth it, else none; None if nothing in
    it is chosen, so that the loops inside need not be looked at."""
    if not isinstance(loop.extent, Const) or loop.role in ("vector", "threads") or RIM in loop.attrs:
        return _NONE
    n = loop.extent.value
    inside = list(statements((loop,)))
    if not any(map(_chooses, inside)):
        return None
    order = subexpressions([expr for stmt in inside for expr in expressions(stmt)])
    work = operations(order)
    loops = [stmt for stmt in inside if isinstance(stmt, Loop)]
    total = trips
    for each in loops:
        total *= extent_of(each)
    ranges = ranges_of(loops)
    windows = total >= WINDOWS or (total >= STRIDED_WINDOWS and _strided(order, loops))
    conditions = _conditions(order, loop.var, n, ranges, windows)
    points: set[int] = set()
    narrow = long = False
    turns = n <= TURNS and len(loops) == 1
    for expr in order:
        if isinstance(expr, Op) and expr.name == "select" and conditions.get(id(expr.args[0])):
            guarded = [x for x in subexpressions(expr.args[1:]) if isinstance(x, Load)]
            guarded = [x for x in guarded if not is_inside(x, ranges)]
            apart = _apart(expr.args[1], expr.args[2]) >= LONG_SIDE
            if guarded or turns or apart:
                points.update(conditions[id(expr.args[0])])
                narrow = narrow or any(ITEMSIZE[x.buffer.dtype] < 4 for x in guarded)
                long = long or apart
        elif isinstance(expr, Load) and not loops[1:] and loop.role in ("parallel", "reduce"):
            points.update(_bends(expr.index, loop.var, n, conditions))
    if not points:
        return _NONE
    many = narrow or total >= MANY_ITERATIONS
    if not many:
        return _NONE
    roots = [expr for stmt in inside for expr in expressions(stmt)]
    rim = 0 if loops[1:] or narrow or long else _rim(loop, points)
    if rim:
        found = [p for p in (rim, n - rim) if any(abs(point - p) < rim for point in points)]
        middle = operations(_kept(roots, (_Part(loop.var, conditions, n // 2, ranges),)))
        if work * len(found) + middle <= MAX_OPS:
            return _Cuts(found, rim)
    ends = max(min(p, n - p) for p in points)
    if len(points) > 1 and ends <= ENDS and MIDDLE * ends <= n and not long and _all_lanes_alike(loop, loops, order):
        parts = [_Part(loop.var, conditions, start, ranges) for start in (0, *sorted(points))]
        middle = operations(_kept(roots, (_Part(loop.var, conditions, ends, ranges),)))
        if work + middle < sum(operations(_kept(roots, (part,))) for part in parts):
            return _Cuts((ends, n - ends), ends, True)
    for found in (sorted(points) if len(points) < MAX_PARTS else [], _around_longest(sorted(points), n)):
        parts = [_Part(loop.var, conditions, start, ranges) for start in (0, *found)]
        kept = sum([operations(_kept(roots, (part,))) for part in parts])
        wasteful = work * (len(found) + 1) >= 2 * kept
        if found and kept <= (MOST_OPS if wasteful else MAX_OPS):
            return _Cuts(found)
    parts = _longest(order, (loop, *loops), total >= WINDOWS)
    # The last `found` is around the longest stretch of this loop.
    if found and kept <= MOST_OPS and _steps(roots, parts[:0]) >= 2 * _steps(roots, parts):
        return _Cuts(found)
    return _NONE


def _between(loop: Loop) -> Loop | None:
    """The loop in a loop of a few iterations, whose results lie between each other: all are written in one pass."""
    if len(loop.body) != 1 or loop.role != "parallel" or extent_of(loop) > TURNS:
        return None
    (rows,) = loop.body
    if not isinstance(rows, Loop) or rows.role != "parallel" or loop.carried or rows.carried or local_uses((loop,)):
        return None
    written = [stmt for stmt in statements(rows.body) if isinstance(stmt, Store)]
    few, many = Axis(loop), Axis(rows)
    between = all(few.step(x.index) == 1 and (many.step(x.index) or 0) == extent_of(loop) for x in written)
    return (
        rows if written and between and isinstance(rows.extent, Const) and extent_of(rows) >= MANY_ITERATIONS else None
    )


def _all_lanes_alike(loop: Loop, loops: Sequence[Loop], order: Sequence[Expr]) -> bool:
    """Whether iterations may be done in another order, and what they ask does not depend on the innermost loop."""
    if loop.role != "parallel" or loop.carried or STEPS in dict(loop.attrs) or loops[-1] is loop:
        return False
    asked = subexpressions([expr for expr in order if isinstance(expr, Op) and expr.name in COMPARES])
    return not any(isinstance(expr, Read) and expr.var is loops[-1].var for expr in asked)


def _strided(order: Sequence[Expr], loops: Sequence[Loop]) -> bool:
    """Whether the innermost parallel loop, which will be lanes, loads what does not lie side by side."""
    lanes = [loop for loop in loops if loop.role == "parallel"][-1:]
    steps = {Axis(loop).step(expr.index) for loop in lanes for expr in order if isinstance(expr, Load)}
    return not steps <= {0, 1, -1}


def _rim(loop: Loop, points: Set[int]) -> int:
    """The lanes at each end of a loop that hold all points, so that one vector there asks; 0 if it is to be cut there.

    Measured (Zen 4): stencils of 64 to 256 columns whose first and last elements were computed one by one take 0.65 to
    0.9 of the time; a step of shallow water 12.1 us, now 9.9, seven points of 48 x 48 x 48 16.2 and 11.6.
    """
    if loop.role != "parallel":
        return 0
    axis, n = Axis(loop), extent_of(loop)
    sizes = []
    for stmt in loop.body:
        for node in access_nodes(stmt):
            sizes.append(ITEMSIZE[node.buffer.dtype])
            step = axis.step(node.index)
            if step != 1 and (isinstance(node, Store) or step not in (0, -1)):
                return 0
            if isinstance(node, Load) and sizes[-1] < 4:
                return 0
    lanes = NOMINAL.vector_bytes // min([size for size in sizes if size >= 4], default=4)
    few = VECTORS_WITH_ENDS[0] * lanes <= n <= VECTORS_WITH_ENDS[1] * lanes
    return lanes if few and all(p < lanes or p > n - lanes for p in points) else 0


def _conditions(order: Sequence[Expr], var: Var, n: int, ranges: Ranges, windows: bool) -> dict[int, list[int]]:
    """The iterations of a loop at which each comparison, and what is made of comparisons, changes; with `windows` also
    those from which it is the same for all of a window.
    """
    found: dict[int, list[int]] = {}
    for expr in order:
        if isinstance(expr, Op) and expr.name in COMPARES and expr.args[0].dtype == "i64":
            found[id(expr)] = _changes(expr, var, n, ranges, windows)
        elif isinstance(expr, Op) and expr.name in ("and", "or", "not") and expr.dtype == "bool":
            found[id(expr)] = [p for x in expr.args for p in found.get(id(x), [])]
    return found


def _longest(order: Sequence[Expr], loops: Sequence[Loop], windows: bool) -> list[_Part]:
    """Where conditions do not change for the longest, in each of the loops."""
    found: list[_Part] = []
    ranges = ranges_of(loops)
    for loop in loops:
        if isinstance(loop.extent, Const):
            conditions = _conditions(order, loop.var, loop.extent.value, ranges, windows)
            edges = [0, *sorted({p for points in conditions.values() for p in points}), loop.extent.value]
            start = max(itertools.pairwise(edges), key=lambda edge: edge[1] - edge[0])[0]
            found.append(_Part(loop.var, conditions, start, ranges))
    return found


def _around_longest(points: Sequence[int], n: int) -> list[int]:
    """The ends of the longest stretch between points, if it is most of the iterations."""
    edges = [0, *points, n]
    size, start = max((b - a, a) for a, b in itertools.pairwise(edges))
    return [p for p in (start, start + size) if 0 < p < n] if LONGEST_SHARE * size >= n * (LONGEST_SHARE - 1) else []


def _bends(index: Expr, var: Var, n: int, conditions: Mapping[int, Sequence[int]]) -> Iterator[int]:
    """The iterations at which an index goes on otherwise: x[min(i + 1, n - 1)] are neighbours, and one more."""
    for expr in subexpressions((index,)):
        if not isinstance(expr, Op) or expr.dtype != "i64":
            continue
        if expr.name in ("min", "max"):
            yield from _changes(Op("lt", "bool", expr.args), var, n, {})
        elif expr.name == "select":
            yield from conditions.get(id(expr.args[0]), ())


def _steps(roots: Sequence[Expr], parts: Sequence[_Part]) -> int:
    """Ops and loads in parts of loops, without index arithmetic, most of which is hoisted."""
    kept = _kept(roots, parts, indices=False)
    chosen = {id(x) for expr in kept if _is_choice(expr) and _decided(expr, parts) is None for x in expr.args[1:]}
    return operations(kept) + sum(MASKED if id(x) in chosen else 1 for x in kept if isinstance(x, Load))


def _is_choice(expr: Expr) -> TypeGuard[Op]:
    return isinstance(expr, Op) and expr.name == "select"


def _decided(choice: Op, parts: Sequence[_Part]) -> bool | None:
    """Whether the condition of a choice holds in parts of loops; None if none of them tells."""
    of = (part for part in parts if part.conditions.get(id(choice.args[0])))
    return next((known for part in of if (known := _known(choice.args[0], part)) is not None), None)


def _kept(roots: Sequence[Expr], parts: Sequence[_Part], indices: bool = True) -> list[Expr]:
    """What is computed in parts of loops in which all that changes at certain iterations is known."""
    done: dict[int, Expr] = {}
    stack = list(roots)
    while stack:
        expr = stack.pop()
        if id(expr) in done:
            continue
        done[id(expr)] = expr
        if isinstance(expr, Load):
            stack += (expr.index,) if indices else ()
        elif isinstance(expr, Op):
            known = _decided(expr, parts) if expr.name == "select" else None
            stack += expr.args if known is None else [expr.args[1] if known else expr.args[2]]
    return list(done.values())


def _known(condition: Expr, part: _Part) -> bool | None:
    """Whether a condition holds where a part begins; None if that depends on more than the iteration."""
    if not isinstance(condition, Op):
        return None
    if condition.name in ("and", "or", "not"):
        inner = [_known(x, part) for x in condition.args]
        if condition.name == "not":
            return None if inner[0] is None else not inner[0]
        decided = condition.name == "or"  # what one side alone decides
        return decided if decided in inner else None if None in inner else not decided
    line = _line(condition, part.var, part.ranges)
    return None if line is None else line.truth(part.start)


def _at_the_rim(stmt: Stmt) -> Stmt:
    """A statement whose loops are not cut: at the ends of a loop around them they take little time."""
    stmt = with_blocks(stmt, lambda body: tuple(map(_at_the_rim, body)))
    if isinstance(stmt, Loop) and RIM not in stmt.attrs:
        return Loop(stmt.var, stmt.extent, stmt.role, stmt.body, stmt.carried, (*stmt.attrs, RIM))
    return stmt


@fact
def _chooses(stmt: Stmt) -> bool:
    """Whether an expression of a statement itself is a choice, or an index with a bound."""
    return any(
        isinstance(expr, Op) and (expr.name == "select" or (expr.name in ("min", "max") and expr.dtype == "i64"))
        for expr in nodes(stmt)
    )


def _apart(x: Expr, y: Expr) -> int:
    """The ops that only one of two expressions needs."""
    of_x, of_y = ({id(expr): expr for expr in subexpressions((side,))} for side in (x, y))
    return operations([expr for key, expr in of_x.items() if key not in of_y]) + operations(
        [expr for key, expr in of_y.items() if key not in of_x]
    )


def _changes(compare: Op, var: Var, n: int, ranges: Ranges, windows: bool = False) -> list[int]:
    """Iterations p in (0, n) at which a comparison of `var` with a constant is not what it is at p - 1.

    It may depend on loops inside for so many iterations as a block has, or, with `windows`, as a window, of which
    there are several.
    """
    line = _line(compare, var, ranges)
    if line is None or line.slope == 0:
        return []
    unsure = (line.high - line.low) // abs(line.slope)
    if unsure and not (windows and unsure * LONGEST_SHARE <= n):
        return []
    around: set[int] = set()
    for offset in (line.low, line.high):
        zero, rest = divmod(-offset, line.slope)  # where slope * v + offset reaches 0
        around |= {zero, zero + 1} if rest == 0 else {zero + 1}
    return [p for p in sorted(around) if 0 < p < n and line.truth(p) != line.truth(p - 1)]


class _Line(NamedTuple):
    """A comparison of slope * v + something from `low` to `high` with 0."""

    name: str
    slope: int
    low: int
    high: int

    def truth(self, v: int) -> bool | None:
        """Whether it holds at `v`; None if that depends on more than `v`."""
        low, high = self.slope * v + self.low, self.slope * v + self.high
        match self.name:
            case "lt" | "ge":
                less = _sure(high < 0, low < 0)
                return less if self.name == "lt" or less is None else not less
            case "le" | "gt":
                less = _sure(high <= 0, low <= 0)
                return less if self.name == "le" or less is None else not less
        same = _sure(low == high == 0, low <= 0 <= high)
        return same if self.name == "eq" or same is None else not same


def _sure(always: bool, ever: bool) -> bool | None:
    return always if always == ever else None


def _line(compare: Op, var: Var, ranges: Ranges) -> _Line | None:
    """A comparison as one of a line in `var`; None if more is in it.

    Loops in that of `var` may go through the blocks that its iterations are: what a block asks is known in all blocks
    but one. Means over 2 x 2 after a roll took 97 us, now 6 (256 x 256, Zen 4).
    """
    if compare.name not in COMPARES or compare.args[0].dtype != "i64":
        return None
    left, a = terms(compare.args[0])
    right, b = terms(compare.args[1])
    slope, low, high = 0, a - b, a - b
    for side, sign in ((left, 1), (right, -1)):
        for term in side:
            of, factor = _factor(term)
            if of is var:
                slope += sign * factor
            elif of is not None and of in ranges:
                ends = [sign * factor * end for end in ranges[of]]
                low, high = low + min(ends), high + max(ends)
            else:
                return None
    return _Line(compare.name, slope, low, high)


def _factor(term: Expr) -> tuple[Var | None, int]:
    """A variable and c of a term c * variable; no variable of other terms."""
    if isinstance(term, Read):
        return term.var, 1
    if isinstance(term, Op) and term.name == "mul" and isinstance(term.args[1], Const):
        inner = term.args[0]
        return (inner.var, term.args[1].value) if isinstance(inner, Read) else (None, 0)
    return None, 0


def _counted_from(loop: Loop, start: int) -> tuple[tuple[str, Any], ...]:
    """The attrs of the part of a loop that begins at `start`."""
    known = dict(loop.attrs)
    if not start or STEPS not in known:
        return loop.attrs
    known[STEPS_FROM] = known.get(STEPS_FROM, 0) + start * known.get(STEPS_EACH, 1)
    return tuple(known.items())
