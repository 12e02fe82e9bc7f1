"""Split: a loop whose conditions change at known iterations becomes one loop for each stretch in between.

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

Measured: a stencil of 25 points on 512 x 512 pixels, padded by those of its edges, took 2 ms, now 0.35. Two joined
draws of 10,000 random words took 90 us where lanes did both, now 36. Concatenations and stacks of 10 to 32 pieces of
rows take a tenth of the time that they took when at most 8 parts were made.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from pullback.loops.ir.affine import interval, terms
from pullback.loops.ir.fold import COMPARES, const, make
from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.ir import (
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
    Var,
)
from pullback.loops.ir.kernels import OnOtherBuffers
from pullback.loops.ir.types import ITEMSIZE
from pullback.loops.ir.visit import (
    Substitute,
    expressions,
    fact,
    local_uses,
    nodes,
    statements,
    subexpressions,
    with_blocks,
)
from pullback.loops.schedule.cost import extent_of, operations

from .simplify import simplify

MAX_PARTS = 64
MAX_OPS = 400  # of all parts together
MOST_OPS = 4000  # the same where lanes that compute every side of a choice would take twice as long
MANY = 1 << 8  # iterations from which masks of wide elements are worth avoiding too
MASKED = 7  # loads in whose time a lane asks whether it may load: 5 to 10
TURNS = 4  # kinds of elements that take turns along an axis: each is computed by itself, all in one pass
LONGEST = 4  # one stretch is most of a loop if what is left is at most one such part
_Known = tuple[Var, Mapping[int, Sequence[int]], int]  # a loop, where its conditions change, where a part of it begins
LONG = 16  # ops that only one side of a choice needs, from which it is not computed in vain


def split(function: Function) -> Function:
    """The function with loops cut where their conditions change."""
    settled: dict[Stmt, int] = {}
    for _ in range(3):  # one level of nested loops at a time: what is known outside decides what is left inside
        splitter = _Split(settled, function)
        body = splitter.block(function.body, 1)
        if not splitter.cuts:
            return function
        buffers = (*function.buffers, *splitter.new.buffers)
        function = simplify(Function(function.name, buffers, body), settled.keys())
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
                    points = _points(stmt, trips)
                    if points:
                        self.cuts += 1
                        result += self.parts(stmt, points)
                        continue
                    before = self.cuts
                    inner = () if points is None else self.block(stmt.body, trips * extent_of(stmt))
                    if self.cuts == before:
                        self.settled[stmt] = trips
                    else:
                        stmt = Loop(stmt.var, stmt.extent, stmt.role, inner, stmt.carried, stmt.attrs)
                case _:
                    stmt = with_blocks(stmt, self.block, trips)
            result.append(stmt)
        return tuple(result)

    def parts(self, loop: Loop, points: list[int]) -> list[Stmt]:
        """One loop for each stretch between `points`; carried values go from one to the next."""
        assert isinstance(loop.extent, Const)
        edges = [0, *points, loop.extent.value]
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
            result.append(Loop(var, const("i64", stop - start), loop.role, body, tuple(groups), attrs))
        return result

    def _own(self, loop: Loop) -> list[Buffer]:
        """Scratch space that iterations of a parallel loop have to themselves: of each part, or threads could not share
        the parts out.
        """
        inside = local_uses((loop,)) if loop.role == "parallel" else {}
        if any(isinstance(stmt, (Call, Run)) for stmt in statements((loop,))):
            return []
        return [buffer for buffer, count in inside.items() if count == self.locals[buffer]]


def _points(loop: Loop, trips: int) -> list[int] | None:
    """The iterations at which conditions in `loop` change, if cutting there is worth it, else none; None if nothing in
    it is chosen, so that the loops inside need not be looked at."""
    if not isinstance(loop.extent, Const) or loop.role in ("vector", "threads"):
        return []
    n = loop.extent.value
    inside = list(statements((loop,)))
    if not any(map(_chooses, inside)):
        return None
    order = subexpressions([expr for stmt in inside for expr in expressions(stmt)])
    work = operations(order)
    conditions = _conditions(order, loop.var, n)
    points: set[int] = set()
    narrow = False
    loops = [stmt for stmt in inside if isinstance(stmt, Loop)]
    ranges = {each.var: (0, extent_of(each) - 1) for each in loops if isinstance(each.extent, Const)}
    turns = n <= TURNS and len(loops) == 1
    for expr in order:
        if isinstance(expr, Op) and expr.name == "select" and conditions.get(id(expr.args[0])):
            guarded = [x for x in subexpressions(expr.args[1:]) if isinstance(x, Load)]
            guarded = [x for x in guarded if not _inside(x, ranges)]
            apart = _apart(expr.args[1], expr.args[2])
            if guarded or turns or apart >= LONG:
                points.update(conditions[id(expr.args[0])])
                narrow = narrow or any(ITEMSIZE[x.buffer.dtype] < 4 for x in guarded)
        elif isinstance(expr, Load) and not loops[1:] and loop.role in ("parallel", "reduce"):
            points.update(_bends(expr.index, loop.var, n, conditions))
    if not points:
        return []
    total = trips
    for each in loops:
        total *= extent_of(each)
    many = narrow or total >= MANY
    if not many:
        return []
    roots = [expr for stmt in inside for expr in expressions(stmt)]
    for found in (sorted(points) if len(points) < MAX_PARTS else [], _around_longest(sorted(points), n)):
        kept = sum([operations(_kept(roots, ((loop.var, conditions, start),))) for start in (0, *found)])
        wasteful = work * (len(found) + 1) >= 2 * kept
        if found and kept <= (MOST_OPS if wasteful else MAX_OPS):
            return found
    parts = _longest(order, (loop, *loops))  # the last `found` is around the longest stretch of this loop
    return found if found and kept <= MOST_OPS and _steps(roots, parts[:0]) >= 2 * _steps(roots, parts) else []


def _conditions(order: Sequence[Expr], var: Var, n: int) -> dict[int, list[int]]:
    """The iterations of a loop at which each comparison, and what is made of comparisons, changes."""
    found: dict[int, list[int]] = {}
    for expr in order:
        if isinstance(expr, Op) and expr.name in COMPARES and expr.args[0].dtype == "i64":
            found[id(expr)] = _changes(expr, var, n)
        elif isinstance(expr, Op) and expr.name in ("and", "or", "not") and expr.dtype == "bool":
            found[id(expr)] = [p for x in expr.args for p in found.get(id(x), [])]
    return found


def _longest(order: Sequence[Expr], loops: Sequence[Loop]) -> list[_Known]:
    """Where conditions do not change for the longest, in each of the loops."""
    found: list[_Known] = []
    for loop in loops:
        if isinstance(loop.extent, Const):
            conditions = _conditions(order, loop.var, loop.extent.value)
            edges = [0, *sorted({p for points in conditions.values() for p in points}), loop.extent.value]
            start = max(itertools.pairwise(edges), key=lambda edge: edge[1] - edge[0])[0]
            found.append((loop.var, conditions, start))
    return found


def _around_longest(points: Sequence[int], n: int) -> list[int]:
    """The ends of the longest stretch between points, if it is most of the iterations."""
    edges = [0, *points, n]
    size, start = max((b - a, a) for a, b in itertools.pairwise(edges))
    return [p for p in (start, start + size) if 0 < p < n] if LONGEST * size >= n * (LONGEST - 1) else []


def _bends(index: Expr, var: Var, n: int, conditions: Mapping[int, Sequence[int]]) -> Iterator[int]:
    """The iterations at which an index goes on otherwise: x[min(i + 1, n - 1)] are neighbours, and one more."""
    for expr in subexpressions((index,)):
        if not isinstance(expr, Op) or expr.dtype != "i64":
            continue
        if expr.name in ("min", "max"):
            yield from _changes(Op("lt", "bool", expr.args), var, n)
        elif expr.name == "select":
            yield from conditions.get(id(expr.args[0]), ())


def _steps(roots: Sequence[Expr], parts: Sequence[_Known]) -> int:
    """Ops and loads in parts of loops, without index arithmetic, most of which is hoisted."""
    kept = _kept(roots, parts, indices=False)
    chosen = {id(x) for expr in kept if _is_choice(expr) and _decided(expr, parts) is None for x in expr.args[1:]}
    return operations(kept) + sum(MASKED if id(x) in chosen else 1 for x in kept if isinstance(x, Load))


def _is_choice(expr: Expr) -> TypeGuard[Op]:
    return isinstance(expr, Op) and expr.name == "select"


def _decided(choice: Op, parts: Sequence[_Known]) -> bool | None:
    """Whether the condition of a choice holds in parts of loops; None if none of them tells."""
    of = ((var, start) for var, conditions, start in parts if conditions.get(id(choice.args[0])))
    return next((known for at in of if (known := _known(choice.args[0], *at)) is not None), None)


def _kept(roots: Sequence[Expr], parts: Sequence[_Known], indices: bool = True) -> list[Expr]:
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


def _known(condition: Expr, var: Var, at: int) -> bool | None:
    """Whether a condition holds at iteration `at`; None if that depends on more than the iteration."""
    if not isinstance(condition, Op):
        return None
    if condition.name in ("and", "or", "not"):
        inner = [_known(x, var, at) for x in condition.args]
        if condition.name == "not":
            return None if inner[0] is None else not inner[0]
        decided = condition.name == "or"  # what one side alone decides
        return decided if decided in inner else None if None in inner else not decided
    line = _line(condition, var)
    return None if line is None else _truth(condition.name, *line, at)


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


def _inside(load: Load, ranges: Mapping[Var, tuple[int, int]]) -> bool:
    """Whether a load is inside its buffer in all iterations, as far as the ranges of indices tell."""
    bounds = interval(load.index, ranges)
    return bounds is not None and bounds[0] >= 0 and bounds[1] < load.buffer.size


def _changes(compare: Op, var: Var, n: int) -> list[int]:
    """Iterations p in (0, n) at which a comparison of `var` with a constant is not what it is at p - 1."""
    line = _line(compare, var)
    if line is None:
        return []
    slope, offset = line
    if slope == 0:
        return []
    zero, rest = divmod(-offset, slope)  # where slope * v + offset reaches 0
    around = {zero, zero + 1} if rest == 0 else {zero + 1}
    truth = functools.partial(_truth, compare.name, slope, offset)
    return [p for p in sorted(around) if 0 < p < n and truth(p) != truth(p - 1)]


def _line(compare: Op, var: Var) -> tuple[int, int] | None:
    """(slope, offset) such that a comparison is one of slope * var + offset with 0; None if more is in it."""
    if compare.name not in COMPARES or compare.args[0].dtype != "i64":
        return None
    left, a = terms(compare.args[0])
    right, b = terms(compare.args[1])
    slope = 0
    for side, sign in ((left, 1), (right, -1)):
        for term in side:
            factor = _factor(term, var)
            if factor is None:
                return None
            slope += sign * factor
    return slope, a - b


def _truth(name: str, slope: int, offset: int, v: int) -> bool:
    d = slope * v + offset
    return {"lt": d < 0, "le": d <= 0, "gt": d > 0, "ge": d >= 0, "eq": d == 0, "ne": d != 0}[name]


def _factor(term: Expr, var: Var) -> int | None:
    """c of a term c * var; None for other terms."""
    if isinstance(term, Read):
        return 1 if term.var is var else None
    if isinstance(term, Op) and term.name == "mul" and isinstance(term.args[1], Const):
        inner = term.args[0]
        return term.args[1].value if isinstance(inner, Read) and inner.var is var else None
    return None


def _counted_from(loop: Loop, start: int) -> tuple[tuple[str, Any], ...]:
    """The attrs of the part of a loop that begins at `start`."""
    known = dict(loop.attrs)
    if not start or STEPS not in known:
        return loop.attrs
    known[STEPS_FROM] = known.get(STEPS_FROM, 0) + start * known.get(STEPS_EACH, 1)
    return tuple(known.items())
